"""The modules and attributes of TensorFlow that nobody has promised to keep. Only this module imports `tensorflow.python`.

`tf_internals.context` is the module `tensorflow.python.eager.context`, imported when it is first used. A name that a version of
TensorFlow lacks raises Renamed, which says the name; tests/test_tf_internals.py looks all of them up on every supported version.
"""

import inspect
from importlib import import_module
from typing import Any

# The name here, the module, and what is used of it.
MODULES = {
    # Reads values eagerly while a graph is being made.
    "context": ("tensorflow.python.eager.context", "eager_mode"),
    # Reads the call stack, where lines of a traced copy of a function are those of its source.
    "tf_stack": ("tensorflow.python.util.tf_stack", "extract_stack"),
    # Tells of each line of such a copy which line of the source it stands for.
    "origin_info": ("tensorflow.python.autograph.pyct.origin_info", "create_source_map"),
    # The classes whose creation, reads and writes the observer reports.
    "resource_variables": (
        "tensorflow.python.ops.resource_variable_ops",
        "ResourceVariable BaseResourceVariable BaseResourceVariable._read_variable_op",
    ),
    "values": ("tensorflow.python.distribute.values", "DistributedVariable"),
    # The class of tensors with a value, and that of iterators over datasets: reads and waits are counted. What gives an
    # operation of a graph another input.
    "ops": ("tensorflow.python.framework.ops", "_EagerTensorBase Operation._update_input"),
    # Computes sizes that follow from the shapes of a graph.
    "tensor_util": (
        "tensorflow.python.framework.tensor_util",
        "constant_value try_evaluate_constant",
    ),
    "iterator_ops": ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator"),
    "multi_device_iterator_ops": (
        "tensorflow.python.data.ops.multi_device_iterator_ops",
        "OwnedMultiDeviceIterator",
    ),
    "ps_values": (
        "tensorflow.python.distribute.ps_values",
        "AggregatingVariable CachingVariable",
    ),
    "tpu_values": (
        "tensorflow.python.distribute.tpu_values",
        "TPUDistributedVariable TPUMirroredVariable",
    ),
    # Makes the seed of an operation of that which the program gives it and the global one.
    "random_seed": ("tensorflow.python.framework.random_seed", "get_seed DEFAULT_GRAPH_SEED"),
    # The operations that draw random numbers, whoever asks for them.
    "random_ops": ("tensorflow.python.ops.gen_random_ops", "random_uniform random_standard_normal"),
    "stateful_random_ops": (
        "tensorflow.python.ops.gen_stateful_random_ops",
        "stateful_uniform stateful_standard_normal_v2",
    ),
    "stateless_random_ops": (
        "tensorflow.python.ops.gen_stateless_random_ops",
        "stateless_random_uniform stateless_random_normal",
    ),
    "stateless_random_ops_v2": (
        "tensorflow.python.ops.gen_stateless_random_ops_v2",
        "stateless_random_uniform_v2 stateless_random_normal_v2",
    ),
    # Tells of each operation that runs.
    "op_callbacks": (
        "tensorflow.python.framework.op_callbacks",
        "add_op_callback remove_op_callback",
    ),
    # Tells whether any tape records what is computed.
    "record": ("tensorflow.python.eager.record", "could_possibly_record"),
    # What `tf.stop_gradient` and `keras.ops.stop_gradient` call.
    "gen_array_ops": ("tensorflow.python.ops.gen_array_ops", "stop_gradient"),
    # Makes each loop of a graph.
    "while_v2": ("tensorflow.python.ops.while_v2", "while_loop"),
    # Draw the classes of a sampled loss.
    "candidate_sampling_ops": (
        "tensorflow.python.ops.gen_candidate_sampling_ops",
        "log_uniform_candidate_sampler uniform_candidate_sampler",
    ),
    # Make batches of the arrays, or take those of the Python objects, that are given to `fit`, in Keras 3 and in Keras 2.
    "array_data_adapter": (
        "keras.src.trainers.data_adapters.array_data_adapter",
        "ArrayDataAdapter",
    ),
    "py_dataset_adapter": (
        "keras.src.trainers.data_adapters.py_dataset_adapter",
        "PyDatasetAdapter",
    ),
    "generator_data_adapter": (
        "keras.src.trainers.data_adapters.generator_data_adapter",
        "GeneratorDataAdapter",
    ),
    "adapters_of_keras_2": (
        "tf_keras.src.engine.data_adapter",
        "TensorLikeDataAdapter GeneratorDataAdapter",
    ),
    # The class of models made of their inputs and outputs, whose `get_config` is its own, in Keras 3 and in Keras 2.
    "functional": ("keras.src.models.functional", "Functional"),
    "functional_of_keras_2": ("tf_keras.src.engine.functional", "Functional"),
    # Writes the last part of a checkpoint.
    "gen_io_ops": ("tensorflow.python.ops.gen_io_ops", "merge_v2_checkpoints"),
    # What takes a path: functions and classes of files, of records, of events and of checkpoints.
    "pywrap_file_io": (
        "tensorflow.python.lib.io._pywrap_file_io",
        "FileExists IsDirectory HasAtomicMove Stat BufferedInputStream WritableFile DeleteFile DeleteRecursively"
        " CreateDir RecursivelyCreateDir CopyFile RenameFile GetChildren GetMatchingFiles",
    ),
    "pywrap_record_io": (
        "tensorflow.python.lib.io._pywrap_record_io",
        "RecordIterator RandomRecordReader",
    ),
    "tf_record": ("tensorflow.python.lib.io.tf_record", "TFRecordWriter"),
    "pywrap_events_writer": ("tensorflow.python.client._pywrap_events_writer", "EventsWriter"),
    "profiler_session": (
        "tensorflow.python.profiler.internal._pywrap_profiler",
        "ProfilerSession ProfilerSession.start",
    ),
    "py_checkpoint_reader": ("tensorflow.python.training.py_checkpoint_reader", "CheckpointReader"),
    "pywrap_saved_model": ("tensorflow.python.saved_model.pywrap_saved_model", "Save"),
    "fingerprints": (
        "tensorflow.python.saved_model.pywrap_saved_model.fingerprinting",
        "CreateFingerprintDef ReadSavedModelFingerprint SingleprintFromFP SingleprintFromSM",
    ),
    "functional_saver": (
        "tensorflow.python.checkpoint.functional_saver",
        "MultiDeviceSaver MultiDeviceSaver.save MultiDeviceSaver.restore",
    ),
    "saver_of_graphs": ("tensorflow.python.training.saver", "Saver Saver.save Saver.restore"),
    # Runs an operation at once, and adds one to a graph.
    "pywrap_tfe": ("tensorflow.python.pywrap_tfe", "TFE_Py_FastPathExecute TFE_Py_Execute"),
    "op_def_library": ("tensorflow.python.framework.op_def_library", "_apply_op_helper"),
    # Reduces the values that a loss of Keras 3 returns to one number.
    "keras_loss": ("keras.src.losses.loss", "reduce_weighted_values"),
    # Finds the mask of a loss of Keras 2.
    "losses_of_keras_2": ("tf_keras.src.utils.losses_utils", "get_mask"),
    # Makes tf.print write into the cells of a notebook.
    "logging_ops": ("tensorflow.python.ops.logging_ops", "enable_interactive_logging"),
    # The messages of which a compiler's program consists.
    "hlo_pb2": (
        "tensorflow.compiler.xla.service.hlo_pb2",
        "HloModuleProto HloComputationProto HloInstructionProto",
    ),
}


class Renamed(AttributeError):
    """TensorFlow or Keras has no longer a name that the package uses; the message says which."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path, used = MODULES[name]
    try:
        module = import_module(path)
    except ImportError as error:
        raise Renamed(
            f"TensorFlow has no module {path!r} any more, of which {used} is used"
        ) from error
    globals()[name] = module
    return module


def read(owner: Any, name: str) -> Any:
    """Returns an attribute, or raises Renamed. Some objects make up attributes when they are asked, so it is looked for first."""
    require(owner, name)
    return getattr(owner, name)


def replace(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute that is there, or raises Renamed: nobody would read a new one."""
    require(owner, name)
    setattr(owner, name, value)


def require(owner: Any, name: str) -> None:
    try:
        inspect.getattr_static(owner, name)
    except AttributeError:
        kind = owner if inspect.ismodule(owner) or inspect.isclass(owner) else type(owner)
        raise Renamed(f"{kind.__name__} has no {name!r} any more") from None
