"""The rules for what a load leaves unfilled: fm65 if the save had left it out, fm06 if the file is of a smaller model."""

from dataclasses import replace

import edited_programs
import pytest
from recorded import (
    LINE,
    OTHER,
    found,
    loaded,
    modes,
    omitted,
    run,
    saved,
    updated,
    variable,
    written,
)
from strategy_clinic.observer.events import (
    CheckpointRestored,
    ModelCalled,
    SaveKind,
    VariablesKept,
)

MODEL = [variable(number) for number in (1, 2, 11, 12)]  # a model, and another one of its class
FILE = {"path": "ck-1", "made_at": LINE}
WITHOUT = saved(held=[1], left=[omitted(number=2)], **FILE)
SMALLER = saved(held=[1], **FILE)
FILLED = loaded(function="restore", variables=(11, 12))
KEPT = VariablesKept(OTHER, "restore", "ck-1", (12,), (), 1, other_output=False, skipped=False)
CALLED = ModelCalled(OTHER, 8, 1, (11, 12))


def restored(*variables):
    return CheckpointRestored(OTHER, "ck-2", OTHER, variables, (), "")


def judged(save, *events, keras=3):
    found = modes(run(*MODEL, save, FILLED, *events, keras=keras))
    return [each for each in found if each[0] in ("fm06", "fm65")]


@pytest.mark.parametrize("keras", [3, None])
def test_weights_that_the_save_had_left_out(keras):
    """The version of Keras is not always asked for: the installed one is Keras 3."""
    assert judged(WITHOUT, KEPT, CALLED, keras=keras) == [("fm65", 7)]
    assert judged(WITHOUT, KEPT, restored(1, 2), CALLED, keras=keras) == [("fm65", 7)]


def test_weights_that_are_trained_on_with_what_was_filled():
    trained = updated(trains=(11, 12)), *restored_from_itself(12)
    assert judged(WITHOUT, KEPT, CALLED, *trained) == [("fm65", 7)]
    assert judged(SMALLER, KEPT, CALLED, *trained) == []


def restored_from_itself(number):
    """A file that was made of these variables since cannot bring back what the load has left out."""
    return saved(held=[number], path="ck-2"), restored(number)


def test_weights_that_only_an_optimizer_had_saved():
    """With an optimizer, the file has them among what this trains, where the restored model does not look."""
    assert judged(saved(held=[1, 2], **FILE), KEPT, CALLED) == [("fm65", 7)]


def test_weights_that_the_saved_model_had_not():
    assert judged(SMALLER, KEPT, CALLED) == [("fm06", 20)]


IN_KERAS = replace(KEPT, function="load_model", path="m.keras")


def test_weights_that_a_file_of_keras_lacks():
    save = saved(held=[1, 2], path="m.keras", kind=SaveKind.MODEL)
    assert judged(save, IN_KERAS) == [("fm65", 20)]
    assert judged(save, IN_KERAS, loaded(path="other", variables=(12,))) == []
    assert judged(replace(save, path="other.keras"), IN_KERAS) == []
    assert judged(save) == []


RIGHT = {
    "a new head, which is trained": [KEPT, CALLED, updated(trains=(12,))],
    "written by the program": [KEPT, written(number=12), CALLED],
    "loaded from another file": [KEPT, loaded(path="ck-2", variables=(12,)), CALLED],
    "restored from another file": [KEPT, restored(12), CALLED],
    "not called": [KEPT],
    "all is filled": [CALLED],
}


@pytest.mark.parametrize("save", [WITHOUT, SMALLER], ids=["left out", "a smaller model"])
@pytest.mark.parametrize("events", RIGHT.values(), ids=RIGHT)
def test_near_misses(save, events):
    assert judged(save, *events) == []


def test_a_checkpoint_of_the_optimizer_alone():
    kept = replace(KEPT, kept=(11, 12))
    assert judged(SMALLER, kept, CALLED) == judged(WITHOUT, kept, CALLED) == []


@pytest.mark.parametrize("save, keras", [(replace(WITHOUT, kind=SaveKind.MODEL), 3), (WITHOUT, 2)])
def test_what_follows_a_list(save, keras):
    """A file of weights, and a checkpoint of Keras 2."""
    assert [mode for mode, _ in judged(save, KEPT, CALLED, keras=keras)] == []


# Weights that no file has


@pytest.mark.parametrize("of_saved, mode", [(True, "fm65"), (False, "fm05")])
def test_what_the_checkpoint_was_given(of_saved, mode):
    left = [omitted(number=number, trained=True, of_saved=of_saved) for number in (11, 12)]
    events = updated(trains=(1, 2, 11, 12)), saved(held=[1, 2], left=left)
    judged_as = modes(run(*MODEL, *events, steps=4))
    assert {name for name, _ in judged_as} == {mode}


def test_weights_that_the_program_writes_to():
    left = [omitted(number=11, of_saved=True)]
    (finding,) = found(run(*MODEL, updated(trains=(1, 2)), saved(held=[1, 2], left=left)))
    assert finding.mode == "fm65"
    assert str(finding.message).startswith("the checkpoint lacks 1 weight of the model")
    held = saved(held=[11], path="other")
    assert modes(run(*MODEL, updated(trains=(1, 2)), saved(held=[1, 2], left=left), held)) == []


# In real processes

NETWORK = """
import tensorflow as tf


class Network(tf.keras.Model):
    def __init__(self, depth=2):
        super().__init__()
        self.blocks = KIND(tf.keras.layers.Dense(3) for _ in range(depth))
        self.out = tf.keras.layers.Dense(1)

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


trained = Network()
trained.compile("sgd", "mse")
trained.fit(tf.ones((8, 3)), tf.ones((8, 1)), batch_size=8, verbose=0)
path = tf.train.Checkpoint(network=trained).save("saved/ck")
restored = Network(DEPTH)
restored(tf.ones((1, 3)))
tf.train.Checkpoint(network=restored).restore(path).expect_partial()
print(float(restored(tf.ones((1, 3)))[0, 0]))
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "kind, depth, mode", [("tuple", "2", ""), ("list", "2", "fm65"), ("tuple", "3", "fm06")]
)
def test_a_network_of_blocks(kind, depth, mode, tmp_path):
    text = NETWORK.replace("KIND", kind).replace("DEPTH", depth)
    lines = text.splitlines()
    wanted = {"fm65": "path = ", "fm06": "tf.train.Checkpoint(network=restored)"}
    examination = edited_programs.examined(tmp_path, text)
    found = [(each.mode, lines[each.line - 1]) for each in examination.findings]
    assert [name for name, _ in found] == ([mode] if mode else [])
    assert all(line.startswith(wanted[name]) for name, line in found)
