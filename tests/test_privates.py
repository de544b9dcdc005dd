"""Names of other packages that nobody has promised to keep: each is listed, each is used, and each is there.

Runs on the oldest versions and on Colab's too, there without conftest.py: a name that goes is told by name on one of them.
"""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import foreign_objects
import pytest
from foreign_objects import OBJECTS
from private_names import allowed, law, private_names_used
from strategy_clinic.base import private_names
from strategy_clinic.base.private_names import ROWS, Renamed
from strategy_clinic.experiments import variable_copies
from strategy_clinic.setups import parameters, runtime, tpu, tpu_graph


@pytest.fixture(scope="module")
def started():
    """What the first cell of every notebook does."""
    parameters.enter(parameters.Setup("default", 1))


def with_tensorflow(test):
    return pytest.mark.slow(pytest.mark.usefixtures("started")(test))


# Each is there


def missing(row, objects=OBJECTS) -> str:
    try:
        private_names.look_up(row, objects)
        return ""
    except Renamed as error:
        return str(error)


@with_tensorflow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.what}-{row.used[0]}")
def test_each_name_is_there(row):
    if not private_names.is_here(row.library):
        pytest.skip(f"{row.library} is not installed here")
    assert missing(row) == ""


def test_only_what_may_be_absent_is_skipped():
    """Colab's own module is on Colab only, where jupyter_client is an old one."""
    skipped = {row.library for row in ROWS if not private_names.is_here(row.library)}
    assert skipped <= {"google-colab", "jupyter_client>=7", "jupyter_client>=8"}


def test_every_object_is_asked_for():
    asked = {row.start for row in ROWS if "()" in row.start}
    assert asked == set(OBJECTS)


# Each is listed, and each is used


def test_every_private_name_is_listed_and_used():
    assert law() == []


# Mutations


def with_a_use(folder: Path, code: str) -> Path:
    (folder / "helpers").mkdir()
    (folder / "helpers" / "trial.py").write_text(code)
    return folder


UNLISTED = {
    "tf.Variable(1.0)._hidden": "_hidden",
    "self._hidden": "_hidden",
    "getattr(variable, '_hidden', None)": "_hidden",
    "privates.replace(made, '_hidden', 1)": "_hidden",
    "class Ours(Theirs):\n    def _hidden(self): pass": "_hidden",
    "from tensorflow.python.eager import hidden": "tensorflow.python.eager.hidden",
    "from tensorflow import python": "tensorflow.python",
    "import keras.src.hidden as h": "keras.src.hidden",
    "from ipykernel import _hidden": "ipykernel._hidden",
    "tf_keras.src.hidden": "tf_keras.src.hidden",
    "PRELOAD = ('tensorflow.python.hidden',)": "tensorflow.python.hidden",
    "said(client, 'from keras.src import hidden; hidden.one()')": "keras.src.hidden",
    "f'import x\\nprint(x._hidden({value!r}))'": "_hidden",
    "tf.__internal__.hidden": "__internal__",
}


@pytest.mark.parametrize("code", UNLISTED)
def test_a_use_that_is_not_listed_is_noticed_by_name(code, tmp_path):
    found = law([], with_a_use(tmp_path, code))
    assert f"helpers/strategy_clinic/trial.py uses {UNLISTED[code]}, which is not listed" in found


OWN = [
    "class Ours:\n    def _mine(self): pass\n    def other(self): self._mine()",
    "class Ours:\n    def __init__(self): self._mine = self._mine or 1",
    "import trial\ntrial._mine()",
    "os._exit(0)",
    "x.__dict__",
    "print('see model._hidden, which is no code')",
    "name = f'sum_{kind}_of'",
]


@pytest.mark.parametrize("code", OWN)
def test_our_own_names_and_documented_ones_need_no_row(code, tmp_path):
    assert law([], with_a_use(tmp_path, code)) == []


USED = private_names_used()
# Those that are known as private by the way they are written or imported; of the others, only the list knows.
TOLD = [
    row
    for row in ROWS
    if USED & allowed(row) - {e for r in ROWS if r is not row for e in allowed(r)}
]


@pytest.mark.parametrize("row", TOLD, ids=lambda row: row.what)
def test_a_row_that_is_removed_is_noticed_by_name(row):
    found = law([each for each in ROWS if each is not row])
    assert any(row.sign in problem and "not listed" in problem for problem in found)


def test_a_row_that_nothing_uses_is_noticed_by_name():
    unused = replace(ROWS[0], path="_hidden")
    assert law([*ROWS, unused]) == [f"{ROWS[0].used[0]} no longer uses {unused.what}"]


@with_tensorflow
@pytest.mark.parametrize("start", {row.start: row for row in ROWS}.values(), ids=lambda r: r.start)
def test_a_name_that_is_gone_is_told_with_the_reason(start):
    gone = replace(start, path=f"{start.path}_gone" if start.path else "gone")
    if not private_names.is_here(start.library):
        pytest.skip(f"{start.library} is not installed here")
    said = missing(gone)
    assert gone.what in said and start.why in said and start.used[0] in said


@with_tensorflow
def test_a_module_that_is_gone_is_told_by_name():
    gone = replace(ROWS[0], start="tensorflow.python.data.ops.gone", path="")
    assert "tensorflow has no 'tensorflow.python.data.ops.gone' any more" in missing(gone)


def row_of(sign: str):
    return next(row for row in ROWS if row.sign == sign)


@with_tensorflow
def test_a_renamed_attribute_of_a_class_is_told_by_name(monkeypatch):
    import tensorflow as tf

    monkeypatch.delattr(tf.distribute.MirroredStrategy, "_collective_key_base")
    assert "MirroredStrategy has no '_collective_key_base'" in missing(
        row_of("_collective_key_base")
    )


# Where we use them


def test_what_is_not_there_is_neither_read_nor_replaced():
    owner = SimpleNamespace(_there=1)
    private_names.replace(owner, "_there", None)
    assert private_names.read(owner, "_there") is None
    for step in (private_names.read, lambda *given: private_names.replace(*given, 1)):
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
    wrapper = foreign_objects.one_for_all()
    assert variable_copies.parts_of(wrapper)[0] is vars(wrapper).pop("_v")
    with pytest.raises(Renamed, match="AggregatingVariable has no '_v'"):
        variable_copies.parts_of(wrapper)


@pytest.mark.parametrize("decided, wanted", [(False, None), (True, 3)])
def test_a_renamed_mark_of_the_lazy_keras_is_told_by_name(decided, wanted, monkeypatch):
    loader = type("Loader", (), {"Model": int})()
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=loader))
    with pytest.raises(Renamed, match="_tfll_initialized"):
        runtime.generation()
    loader._tfll_initialized = decided
    assert runtime.generation() == wanted


@pytest.mark.parametrize("name", ["_tpu_replicate", "TPUReplicateMetadata"])
def test_a_renamed_mark_in_a_graph_is_told_by_name(name):
    marks = {"TPUReplicateMetadata": ["metadata"], "_tpu_replicate": {"inside"}}
    tpu_graph.require_marks(*marks.values())
    with pytest.raises(Renamed, match=name):
        tpu_graph.require_marks(*(marks | {name: []}).values())
