"""The names of other packages that we lean on and that nobody has promised to keep: one list, each with its reason.

tests/test_privates.py looks every name up, and finds what is used without standing here, or stands here without being used.
"""

import importlib
import inspect
from dataclasses import dataclass

from .package_versions import version_of

# Whose they are | which of our files use them | why. Below, what is looked up, `module: attribute.attribute | attribute`.
# Where a name stands on objects only, brackets say which object; the test knows how to make one.
LISTED = """
tensorflow | helpers/strategy_clinic/setups/tpu.py | Set to False, since CPU devices have a handle for each copy of a variable.
    TPUStrategy() as it is made(): _enable_packed_variable_in_eager_mode
tensorflow | helpers/strategy_clinic/setups/tpu.py | The names of our CPU devices answer yes when TPUStrategy looks for this in them.
    TPUStrategy(): device:TPU:
tensorflow | helpers/strategy_clinic/setups/tpu.py | A TPU is described by replacing this method; under another name ours would not be called.
    tensorflow: distribute.cluster_resolver.TPUClusterResolver.get_tpu_system_metadata
    tensorflow: tpu.experimental.DeviceAssignment.tpu_device | tpu.experimental.DeviceAssignment.host_device
tensorflow | helpers/strategy_clinic/modes/fm18_logical_devices/page.py | It puts a variable on one logical device.
    TPUStrategy().extended(): experimental_logical_device
tensorflow | helpers/strategy_clinic/modes/fm32_optimizer_built_in_replica/page.py | Two sizes of one strategy in a process need sums of their own.
    tensorflow: distribute.MirroredStrategy._collective_key_base
tensorflow | helpers/strategy_clinic/experiments/variable_copies.py | Where all devices read one copy of a variable, that copy is inside a wrapper.
    AggregatingVariable(): _v | distribute_strategy
tensorflow | helpers/strategy_clinic/experiments/checks.py helpers/strategy_clinic/modes/fm23_variable_outside_scope/page.py \
helpers/strategy_clinic/modes/fm35_restore_before_build/page.py | \
It tells whether a strategy knows a variable.
    tensorflow: distribute.StrategyExtended.variable_created_in_scope
tensorflow | helpers/strategy_clinic/modes/fm21_dataset_misdistributed/page.py helpers/strategy_clinic/modes/fm42_input_ends_or_is_not_sharded/page.py | \
It is the function that cuts data for several workers.
    tensorflow.python.distribute.input_ops: auto_shard_dataset

tensorflow | helpers/strategy_clinic/setups/tpu.py | A function that is traced already is known by it, and traced anew for all replicas.
    Function(): python_function | get_concrete_function
tensorflow | helpers/strategy_clinic/setups/tpu_graph.py | A traced program is put into another graph, with what it reads and returns.
    ConcreteFunction(): structured_outputs | graph.captures | graph.capture
tensorflow | helpers/strategy_clinic/setups/tpu_graph.py | TPUStrategy writes it into a graph, where it is written out or left out.
    traced for a TPU(): _tpu_replicate | TPUReplicateMetadata | TPUCompilationResult | TPUReplicatedInput
    traced for a TPU(): TPUReplicatedOutput | TPUPartitioned | CrossReplicaSum | AllToAll | XlaSharding
    traced for a TPU(): XlaSetDynamicDimensionSize
tensorflow | helpers/strategy_clinic/setups/tpu_graph.py | Attributes that begin so are read by a TPU's own passes, and are left out.
    attributes of operations(): _tpu | _xla | _pivot | _class
tensorflow | helpers/strategy_clinic/compiler/lowering.py helpers/strategy_clinic/compiler/programs.py | It gives the program that goes to a compiler.
    compiled Function(): experimental_get_compiler_ir | hlo_serialized
tensorflow | helpers/strategy_clinic/compiler/lowering.py | The compiler's own instructions are written as messages of this kind.
    tensorflow.compiler.xla.service.hlo_pb2: HloModuleProto | HloComputationProto
    fields of HloInstructionProto(): custom_call_target | backend_config | custom_call_api_version | constrain_layout
    fields of HloInstructionProto(): operand_shapes_with_layout | replica_groups | called_computation_ids
tensorflow | tests/test_compiler.py | The tests read the program that goes to a compiler.
    tensorflow.compiler.xla.service.hlo_pb2: HloModuleProto
tensorflow | helpers/strategy_clinic/compiler/libtpu.py | libtpu has a table of functions without names; this header says their places.
    pjrt_c_api.h(): PJRT_Error_Message | PJRT_Error_GetCode | PJRT_Plugin_Initialize | PJRT_Compile
    pjrt_c_api.h(): PJRT_TopologyDescription_Create | PJRT_TopologyDescription_GetDeviceDescriptions
    pjrt_c_api.h(): PJRT_Executable_GetCompiledMemoryStats

tensorflow | helpers/strategy_clinic/setups/tensorflow_patches.py tests/test_strategies.py | \
Every dataset passes here before it is iterated, also on each device; tuning is turned off there.
    tensorflow: data.Dataset._apply_debug_options
tensorflow | helpers/strategy_clinic/setups/runtime.py | It tells whether tf.keras stands for one generation yet, without choosing one.
    KerasLazyLoader(): _tfll_initialized
tf_keras | helpers/strategy_clinic/setups/runtime.py | Keras 2 is known by the module that its Model is from.
    module of a Keras 2 Model(): tf_keras
tf_keras | tests/legacy_suite.py | The suite that tf_keras has for its developers is run on our formats.
    tf_keras.src.distribute.model_combinations: simple_sequential_model
    tf_keras.src.distribute.simple_models: SimpleSequentialModel.get_model
    tf_keras.src.distribute.saved_model_test_base: PREDICT_STEPS | TestSavedModelBase._save_model
    tf_keras.src.distribute.saved_model_test_base: TestSavedModelBase._load_and_run_model
    tf_keras.src.distribute.saved_model_test_base: TestSavedModelBase._train_model
    tf_keras.src.distribute.saved_model_test_base: TestSavedModelBase.run_test_save_no_strategy_restore_strategy
    tf_keras.src.distribute.saved_model_test_base: TestSavedModelBase.run_test_save_strategy_restore_no_strategy
    tf_keras.src.distribute.saved_model_test_base: TestSavedModelBase.run_test_save_strategy_restore_strategy
tensorflow | helpers/strategy_clinic/processes/forkserver.py | Imported once for all kernels; if it is gone, all of them start without it.
    tensorflow.python.data.ops.from_tensors_op
    tensorflow.python.data.ops.range_op
    tensorflow.python.data.ops.rebatch_op
    tensorflow.python.data.ops.zip_op
ipython | helpers/strategy_clinic/processes/forkserver.py | Imported once for all kernels; if it is gone, all of them start without it.
    IPython.core.completerlib
    IPython.core.magics.pylab
    IPython.extensions.storemagic
ipykernel | helpers/strategy_clinic/processes/forkserver.py | Imported once for all kernels; if it is gone, all of them start without it.
    ipykernel.kernelapp
    ipykernel.ipkernel
    ipykernel.debugger
tensorflow | helpers/strategy_clinic/processes/temp_files.py | A process that is killed leaves such files behind, and they are deleted by name.
    files of AutoGraph(): __autograph_generated_file*
tensorflow | tests/test_kernels.py | A kernel is asked whether its TensorFlow is up.
    tensorflow.python.eager.context: context
    context(): _initialized

tensorflow | helpers/strategy_clinic/observer/notes.py | It tells a line of a traced function as it is in the program's own file.
    tensorflow.python.util.tf_stack: extract_stack
tensorflow | helpers/strategy_clinic/observer/variables.py | Variables are watched where they are made, read and written.
    tensorflow.python.ops.resource_variable_ops: BaseResourceVariable._read_variable_op | ResourceVariable
    tensorflow.python.distribute.values: DistributedVariable
    tensorflow.python.distribute.ps_values: AggregatingVariable | CachingVariable
    tensorflow.python.distribute.tpu_values: TPUDistributedVariable | TPUMirroredVariable
tf_keras | helpers/strategy_clinic/observer/variables.py | Mixed precision wraps a variable, which is known by itself.
    AutoCastVariable(): _variable
tensorflow | helpers/strategy_clinic/observer/variables.py | A value is read in between, also while a graph is being made.
    tensorflow.python.eager.context: eager_mode

ipython | helpers/strategy_clinic/base/errors.py helpers/strategy_clinic/session.py helpers/strategy_clinic/rendering/bootstrap.ipy \
tests/test_setups.py | What this method says is shown instead of a traceback.
    failed cell(): _render_traceback_
ipython | helpers/strategy_clinic/setups/parameters.py | The cells that were run are in it, papermill's among them.
    InteractiveShell().user_ns(): In
ipython | helpers/strategy_clinic/experiments/extract_source.py | Cells are found again in linecache by names that begin so.
    names of cells(): <ipython
ipykernel | helpers/strategy_clinic/experiments/extract_source.py | A kernel's cells are found again in linecache by the folder in their names.
    names of a kernel's cells(): dirname
ipykernel | helpers/strategy_clinic/processes/forkserver.py | A kernel ends with the process that is named there: its warm process.
    variables of ipykernel(): JPY_PARENT_PID
ipykernel | helpers/strategy_clinic/processes/kernels.py | The kernelspec that names our provisioner is ipykernel's otherwise.
    ipykernel.kernelspec: get_kernel_dict
jupyter_client>=7 | helpers/strategy_clinic/processes/kernels.py | A forked kernel takes the place of one that this class would launch.
    jupyter_client.provisioning: LocalProvisioner.launch_kernel | LocalProvisioner.process | LocalProvisioner.pid
    jupyter_client.provisioning: LocalProvisioner.pgid | LocalProvisioner.connection_info
jupyter_client>=8 | helpers/strategy_clinic/processes/kernels.py | A kernel's files are looked for from it; version 7 had no need.
    jupyter_client.provisioning: LocalProvisioner.cwd
jupyter_client>=7 | tests/test_kernels.py tests/test_jobs.py | The tests ask it for a kernel's process.
    jupyter_client.manager: KernelManager.provisioner
jupyter_client | helpers/strategy_clinic/processes/notebook_job.py | Kernels are reached by files; a setting of another name would be passed over.
    jupyter_client.manager: KernelManager.transport | KernelManager.ip
nbclient | helpers/strategy_clinic/processes/notebook_job.py | It is turned off; a setting of another name would be passed over.
    nbclient.client: NotebookClient.store_widget_state
papermill | helpers/strategy_clinic/setups/parameters.py | The cell in which papermill puts parameters begins so.
    papermill's cell(): # Parameters
nbval | helpers/strategy_clinic/rendering/sources.py | The output of a cell with this tag is not compared.
    tags of nbval(): nbval-ignore-output
ipywidgets | helpers/strategy_clinic/panel/cards.py | A widget is shown by it, with a sentence for viewers without a kernel.
    ipywidgets: Widget.model_id
google-colab | helpers/strategy_clinic/panel/cards.py | Colab, which shows widgets in its own way, is known by this module.
    google.colab
jsonschema | helpers/strategy_clinic/base/lean.py | It is kept from being imported, which would take a second.
    imports of jsonschema(): rfc3987_syntax

python | helpers/strategy_clinic/processes/forkserver.py | A forked process ends as an ordinary one would.
    atexit: _run_exitfuncs
python | helpers/strategy_clinic/cli.py | A sentence about a mistake names all options.
    ArgumentParser(): _actions
python | helpers/strategy_clinic/experiments/extract_source.py | The sources of cells are read from it.
    linecache: cache
"""
# Names that begin with an underscore and are documented all the same, by os, ctypes, sys and IPython.
DOCUMENTED = {"_exit", "_fields_", "_getframe", "_repr_html_", "_repr_mimebundle_"}


class Renamed(AttributeError):
    """Another package no longer has a name that we lean on; the message says which."""


@dataclass(frozen=True)
class Row:
    """One name: where looking up begins, what is looked up there, and whose it is, where we use it, and why."""

    library: str
    used: tuple[str, ...]
    why: str
    start: str
    path: str

    @property
    def what(self) -> str:
        return f"{self.start}: {self.path}" if self.path else self.start

    @property
    def sign(self) -> str:
        """What is written in our files as long as they use it."""
        return (self.path or self.start).rpartition(".")[2]


def rows_of(text: str) -> list[Row]:
    found = []
    for line in filter(None, text.splitlines()):
        if not line.startswith(" "):
            library, used, why = line.split(" | ")
            continue
        start, _, paths = line.strip().partition(": ")
        found += [
            Row(library, tuple(used.split()), why, start, path) for path in paths.split(" | ")
        ]
    return found


ROWS = rows_of(LISTED)


def read(owner, name: str):
    """An attribute that must be there. It is looked for first: some objects make up what they are asked for."""
    require_name(owner, name)
    return getattr(owner, name)


def replace(owner, name: str, value):
    """Gives an attribute another value; one that is not there would only be made, and nobody would read it."""
    require_name(owner, name)
    setattr(owner, name, value)


def require_name(owner, name: str):
    try:
        inspect.getattr_static(owner, name)
    except AttributeError:
        kind = owner if inspect.ismodule(owner) or inspect.isclass(owner) else type(owner)
        raise Renamed(
            f"{kind.__name__} has no {name!r} any more; see helpers/strategy_clinic/base/private_names.py"
        ) from None


def look_up(row: Row, objects: dict):
    """What a row names; `objects` makes those that brackets stand for. Raises Renamed, with the name and the reason."""
    try:
        found = objects[row.start]() if "()" in row.start else importlib.import_module(row.start)
        for name in row.path.split(".") if row.path else []:
            found = read(found, name)
    except (Renamed, ImportError) as error:
        files = ", ".join(row.used)
        raise Renamed(
            f"{row.library} has no {row.what!r} any more, which {files} leans on. {row.why} ({error})"
        ) from error
    return found


def is_here(library: str) -> bool:
    """Whether this distribution is installed, in this version if one is named; Python always is."""
    from packaging.requirements import Requirement

    wanted = Requirement(library)
    if library == "python":
        return True
    here = version_of(wanted.name)
    return bool(here) and wanted.specifier.contains(here, prereleases=True)
