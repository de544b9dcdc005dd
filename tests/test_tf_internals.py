"""Names of other packages that nobody has promised to keep: each is there, and one that goes is named.

Runs on the oldest supported versions and on Colab's too, there without conftest.py.
"""

import importlib
import operator
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from strategy_clinic.base import tf_internals
from strategy_clinic.base.tf_internals import MODULES, Renamed
from strategy_clinic.compiler import libtpu
from strategy_clinic.programs import variable_copies
from strategy_clinic.setups import parameters, runtime, strategies, tpu, tpu_graph

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def started():
    """What the first cell of every notebook does."""
    parameters.prepare_kernel(parameters.Setup("default", 1))


def with_tensorflow(test):
    return pytest.mark.slow(pytest.mark.usefixtures("started")(test))


# Each is there

# Attributes that the package or a page sets or overrides: under another name, nobody would read them.
OVERRIDDEN = [
    ("tensorflow", "distribute.cluster_resolver.TPUClusterResolver.get_tpu_system_metadata"),
    ("tensorflow", "tpu.experimental.DeviceAssignment.tpu_device"),
    ("tensorflow", "tpu.experimental.DeviceAssignment.host_device"),
    ("tensorflow", "distribute.MirroredStrategy._collective_key_base"),
    ("tensorflow", "distribute.StrategyExtended.variable_created_in_scope"),
    ("tensorflow.python.distribute.input_ops", "auto_shard_dataset"),
]
INTERNALS = [(path, name) for path, used in MODULES.values() for name in used.split()]


@with_tensorflow
@pytest.mark.parametrize("module, name", OVERRIDDEN + INTERNALS)
def test_each_name_is_there(module, name):
    assert operator.attrgetter(name)(importlib.import_module(module)) is not None


@with_tensorflow
def test_the_fields_of_instructions_are_there():
    fields = tf_internals.hlo_pb2.HloInstructionProto.DESCRIPTOR.fields_by_name
    wanted = {"custom_call_target", "backend_config", "replica_groups", "called_computation_ids"}
    assert wanted <= set(fields)


@with_tensorflow
def test_functions_of_the_compiler_are_where_they_are_called():
    """libtpu has a table of functions without names; a header of TensorFlow says their places."""
    import tensorflow as tf

    header = Path(tf.sysconfig.get_include(), "xla", "pjrt", "c", "pjrt_c_api.h").read_text()
    table = header.partition("typedef struct PJRT_Api {")[2].partition("} PJRT_Api;")[0]
    names = re.findall(r"_PJRT_API_STRUCT_FIELD\((\w+)\)", table)
    assert [names[place] for place in libtpu.FUNCTIONS.values()] == list(libtpu.FUNCTIONS)


# One that goes is named


@with_tensorflow
def test_a_module_that_is_gone_is_named(monkeypatch):
    monkeypatch.setitem(MODULES, "gone", ("tensorflow.python.data.ops.gone", "one_name"))
    with pytest.raises(Renamed, match=r"no module 'tensorflow.python.data.ops.gone' any more"):
        _ = tf_internals.gone


def test_a_name_that_is_not_there_is_neither_read_nor_replaced():
    owner = SimpleNamespace(_there=1)
    tf_internals.replace(owner, "_there", None)
    assert tf_internals.read(owner, "_there") is None
    for step in (tf_internals.read, lambda *given: tf_internals.replace(*given, 1)):
        with pytest.raises(Renamed, match="SimpleNamespace has no '_gone'"):
            step(owner, "_gone")
    assert not hasattr(owner, "_gone")


@with_tensorflow
def test_a_renamed_switch_stops_the_making_of_a_strategy(monkeypatch):
    real, name = tpu.strategy_class(), "_enable_packed_variable_in_eager_mode"

    class Newer(real):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            delattr(self, name)

    monkeypatch.setattr(tpu, "strategy_class", lambda: Newer)
    with pytest.raises(Renamed, match=name):
        tpu.strategy()


@with_tensorflow
def test_a_renamed_copy_in_its_wrapper_stops_the_reading_of_copies():
    import tensorflow as tf

    with strategies.central_storage(2).scope():
        wrapper = tf.Variable(1.0)
    assert variable_copies.parts_of(wrapper)[0] is vars(wrapper).pop("_v")
    with pytest.raises(Renamed, match="AggregatingVariable has no '_v'"):
        variable_copies.parts_of(wrapper)


@pytest.mark.parametrize("decided, expected", [(False, None), (True, 3)])
def test_a_renamed_mark_of_the_lazy_keras_is_named(decided, expected, monkeypatch):
    loader = type("Loader", (), {"Model": int})()
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=loader))
    with pytest.raises(Renamed, match="_tfll_initialized"):
        runtime.keras_version()
    loader._tfll_initialized = decided
    assert runtime.keras_version() == expected


@pytest.mark.parametrize("name", ["_tpu_replicate", "TPUReplicateMetadata"])
def test_a_renamed_mark_in_a_graph_is_named(name):
    marks = {"TPUReplicateMetadata": ["metadata"], "_tpu_replicate": {"inside"}}
    tpu_graph.require_marks(*marks.values())
    with pytest.raises(Renamed, match=name):
        tpu_graph.require_marks(*(marks | {name: []}).values())


# No other module uses internals: ruff says so

BANNED = {
    "from tensorflow.python.eager import context": "TID251",
    "import tensorflow.compiler.xla": "TID251",
    "from keras.src import models": "TID251",
    "from tf_keras.src import models": "TID251",
    "import tensorflow as tf\n\ntf.Variable(1.0)._hidden": "SLF001",
}


@pytest.mark.parametrize("code", BANNED)
def test_ruff_refuses_internals_elsewhere(code):
    pytest.importorskip("ruff", reason="ruff is not installed here")
    check = [sys.executable, "-m", "ruff", "check", "--quiet", "--stdin-filename"]
    place = "helpers/strategy_clinic/setups/trial.py"
    done = subprocess.run(
        [*check, place, "-"], input=code, cwd=ROOT, capture_output=True, text=True
    )
    assert BANNED[code] in done.stdout, done.stderr
