"""Objects of other packages on which names are looked up that stand on no module, and what is found to be in them."""

import argparse
import contextlib
import functools
import inspect
import io
import linecache
import os
import re
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest
from strategy_clinic.base import private_names
from strategy_clinic.base.errors import Unavailable
from strategy_clinic.compiler import libtpu
from strategy_clinic.observer import variables
from strategy_clinic.processes import temp_files
from strategy_clinic.setups import strategies, tpu


def having(names):
    """An object that has these names and no others."""
    return SimpleNamespace(**dict.fromkeys(names))


def function(**options):
    import tensorflow as tf

    return tf.function(lambda: tf.ones(2), **options)


def strategy_as_made():
    """TPUStrategy before we set anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_names, "replace", lambda *_: None)
        return tpu.strategy()


def taken_for_tpu():
    """Eight CPU devices were taken for the cores of a TPU, by the words that TPUStrategy looks for."""
    asked = []

    class Asked(tpu.Core):
        def __contains__(self, part):
            asked.append(part)
            return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tpu, "Core", Asked)
        tpu.strategy()
    return having(asked)


def one_for_all():
    import tensorflow as tf

    with strategies.central_storage(2).scope():
        return tf.Variable(1.0)


@functools.cache
def traced_operations() -> list:
    """Of programs in which replicas sum, gather, split over logical devices, get uneven parts, and have variables."""
    import tensorflow as tf

    context = tf.distribute.get_replica_context

    def exchange():
        split = made.experimental_split_to_logical_devices(tf.ones((3, 4)), [1, 2])
        weights.assign_add(1.0)
        return context().all_reduce("SUM", split), context().all_gather(tf.ones((2, 1), "int64"), 0)

    with tpu.watched("v2-8") as programs:
        made = tpu.strategy("v2-8", (1, 1, 1, 2), spmd=True)
        with made.scope():
            weights = tf.Variable(1.0)
        with contextlib.suppress(Unavailable):
            strategies.runner(made)(exchange)
        whole = tpu.strategy()
        uneven = tf.data.Dataset.from_tensor_slices(tf.range(13.0)).batch(13)
        for batch in whole.experimental_distribute_dataset(uneven):
            strategies.runner(whole)(lambda part: 2.0 * part, args=(batch,))
        return [each for _, traced in programs for each in traced.graph.get_operations()]


def traced_for_a_tpu():
    kinds = {each.type for each in traced_operations()}
    marks = {name for each in traced_operations() for name in each.node_def.attr}
    parts = {"TPUPartitioned" for kind in kinds if kind.startswith("TPUPartitioned")}
    return having(kinds | marks | parts)


def attributes_of_operations():
    """The first word of each, such as _tpu of _tpu_replicate; _xla is a mark that only outside compilation sets."""
    import tensorflow as tf
    from tensorflow.python.tpu import tpu_replication

    with tf.Graph().as_default():
        one = tf.constant(1.0)
        with tf.compat.v1.colocate_with(one.op):
            near = tf.identity(one)
    found = {name for each in [*traced_operations(), near.op] for name in each.node_def.attr}
    found |= {tpu_replication._OUTSIDE_COMPILATION_ATTR}
    return having(f"_{name.split('_')[1]}" for name in found if name.startswith("_"))


def compiled_function():
    from tensorflow.compiler.xla.service import hlo_pb2

    lower = private_names.read(function(jit_compile=True), "experimental_get_compiler_ir")()
    assert hlo_pb2.HloModuleProto.FromString(lower(stage="hlo_serialized")).computations
    return having(["experimental_get_compiler_ir", "hlo_serialized"])


def fields_of_instructions():
    from tensorflow.compiler.xla.service import hlo_pb2

    return having(hlo_pb2.HloInstructionProto.DESCRIPTOR.fields_by_name)


def functions_in_place():
    """Those that the header has at the places where we call them."""
    import tensorflow as tf

    header = Path(tf.sysconfig.get_include(), "xla", "pjrt", "c", "pjrt_c_api.h").read_text()
    table = header.partition("typedef struct PJRT_Api {")[2].partition("} PJRT_Api;")[0]
    listed = re.findall(r"_PJRT_API_STRUCT_FIELD\((\w+)\)", table)
    return having(n for n, i in libtpu.FUNCTIONS.items() if listed[i : i + 1] == [n])


def lazy_keras():
    from tensorflow.python.util import lazy_loader

    return lazy_loader.KerasLazyLoader({})


def module_of_model():
    import tf_keras

    return having([tf_keras.Model.__module__.split(".")[0]])


def cast_variable():
    import tf_keras

    layer = tf_keras.layers.Dense(1, dtype=tf_keras.mixed_precision.Policy("mixed_bfloat16"))
    layer.build((1, 1))
    return layer.kernel if variables.is_cast(type(layer.kernel)) else having([])


def autograph_file():
    import tensorflow as tf

    def plain(x):
        return x

    file = Path(tf.autograph.to_graph(plain).__code__.co_filename).name
    return having([temp_files.AUTOGRAPH] if fnmatch(file, temp_files.AUTOGRAPH) else [])


def eager_context():
    from tensorflow.python.eager import context

    return context.context()


@functools.cache
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    return InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))


def failed_cell():
    """A cell that raises what we raise says one sentence and nothing else."""
    code = "from strategy_clinic.base.errors import UserError\nraise UserError('one sentence')"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        shell().run_cell(code)
    return having(["_render_traceback_"] if said.getvalue().strip() == "one sentence" else [])


def shell_names():
    return having(shell().user_ns)


def names_of_cells():
    shell().run_cell("def in_a_cell():\n    pass")
    name = shell().user_ns["in_a_cell"].__code__.co_filename
    known = name in linecache.cache and not os.path.dirname(name)
    return having(["<ipython"] if known and name.startswith("<ipython") else [])


def names_of_a_kernels_cells():
    """Two cells are two files of one folder, and linecache has both."""
    from ipykernel.compiler import XCachingCompiler

    names = [XCachingCompiler().cache(code, 1) for code in ("one = 1", "two = 2")]
    folders = {os.path.dirname(name) for name in names if name in linecache.cache}
    alike = len(set(names)) == 2 and len(folders) == 1 and "" not in folders
    return having(["dirname"] if alike else [])


def variables_of_ipykernel():
    from ipykernel import kernelapp

    return having(re.findall(r"[A-Z_]{4,}", inspect.getsource(kernelapp)))


def papermills_cell():
    import nbformat
    from papermill.parameterize import parameterize_notebook

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    plain = nbformat.v4.new_notebook(metadata={"kernelspec": kernel, "papermill": {}})
    filled = parameterize_notebook(plain, {"keras": 3})
    return having([filled.cells[0].source.splitlines()[0]])


def tags_of_nbval():
    from nbval import plugin

    return having(plugin.metadata_tags)


def imports_of_jsonschema():
    from jsonschema import _format

    return having(re.findall(r"(?:from|import) (\w+)", inspect.getsource(_format)))


OBJECTS = {
    "TPUStrategy() as it is made()": strategy_as_made,
    "TPUStrategy()": taken_for_tpu,
    "TPUStrategy().extended()": lambda: tpu.strategy().extended,
    "AggregatingVariable()": one_for_all,
    "Function()": function,
    "ConcreteFunction()": lambda: function().get_concrete_function(),
    "traced for a TPU()": traced_for_a_tpu,
    "attributes of operations()": attributes_of_operations,
    "compiled Function()": compiled_function,
    "fields of HloInstructionProto()": fields_of_instructions,
    "pjrt_c_api.h()": functions_in_place,
    "KerasLazyLoader()": lazy_keras,
    "module of a Keras 2 Model()": module_of_model,
    "AutoCastVariable()": cast_variable,
    "files of AutoGraph()": autograph_file,
    "context()": eager_context,
    "failed cell()": failed_cell,
    "InteractiveShell().user_ns()": shell_names,
    "names of cells()": names_of_cells,
    "names of a kernel's cells()": names_of_a_kernels_cells,
    "variables of ipykernel()": variables_of_ipykernel,
    "papermill's cell()": papermills_cell,
    "tags of nbval()": tags_of_nbval,
    "imports of jsonschema()": imports_of_jsonschema,
    "ArgumentParser()": argparse.ArgumentParser,
}
