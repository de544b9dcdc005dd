"""The examiner's rule for fm10, and the line that it blames."""

from dataclasses import replace

import pytest
from edited_programs import examined
from recorded import LINE, MINE, OTHER, found, loaded, modes, run, stack, updated, variable
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.modes.fm10_variable_unknown_to_optimizer import repair
from strategy_clinic.observer.events import (
    ExceptionRaised,
    Frame,
    ModelCompiled,
    Outcome,
    Owner,
    TrainableLeftOut,
    UsedOptimizerCompiled,
)

TEXT = "ValueError: Unknown variable: <Variable path=dense/kernel>. This optimizer can only be called for the variables"
RAISED = ExceptionRaised(OTHER, "ValueError", f"{TEXT} it was originally built with.", ())


def test_an_optimizer_is_blamed_where_it_got_another_model():
    assert modes(run(RAISED, outcome=Outcome.RAISED)) == [("fm10", 20)]
    nowhere = UsedOptimizerCompiled((), (1,))
    assert modes(run(nowhere, RAISED, outcome=Outcome.RAISED)) == [("fm10", 20)]
    again = UsedOptimizerCompiled(LINE, (1,))
    assert modes(run(again, RAISED, outcome=Outcome.RAISED)) == [("fm10", 7)]


@pytest.mark.parametrize(
    "first, second, line",
    [
        ((1, 2), (3, 4), 20),
        ((1, 2), (1, 2, 3, 4), 20),
        ((1, 2, 3, 4), (1, 2, 3, 4), 7),
        ((), (), 7),
    ],
    ids=["two models", "a model and its part", "one model", "models that are not built"],
)
def test_an_optimizer_is_blamed_where_a_second_model_is_compiled(first, second, line):
    """Before any step: then nobody knows what the optimizer is going to train."""
    compiles = ModelCompiled(LINE, 1, first), ModelCompiled(OTHER, 1, second)
    updates = [updated(LINE, trains=each, variables=(9,)) for each in ((1, 2), (3, 4))]
    raised = replace(RAISED, location=LINE)
    recording = run(*compiles, *updates, raised, outcome=Outcome.RAISED)
    assert modes(recording) == [("fm10", line)]


def test_an_optimizer_is_blamed_where_it_was_built_for_other_variables(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("adam = Adam()\nadam.build(model.trainable_variables)\nmodel.build((8, 3))\n")
    count = variable(3, maker=Owner.OPTIMIZER, location=stack(path, 2), shape=())
    weight = variable(1, maker=Owner.LAYER, location=stack(path, 3))
    for line, blamed in ((2, 2), (1, 20)):
        slot = variable(4, maker=Owner.OPTIMIZER, location=stack(path, line))
        recording = run(count, weight, slot, RAISED, outcome=Outcome.RAISED)
        assert modes(recording) == [("fm10", blamed)]


@pytest.mark.parametrize("path, words", [("m.h5", "as a `.keras` file"), ("m.keras", "")])
def test_an_optimizer_that_was_loaded_from_hdf5_has_a_fix_of_its_own(path, words):
    (finding,) = found(run(loaded(path=path, function="load"), RAISED, outcome=Outcome.RAISED))
    assert finding.mode == "fm10" and words in finding.fix
    assert bool(words) or "`.h5`" not in finding.fix


TWICE = """\
self.one = self.other = Adam()
self.one.build(model.trainable_variables)
self.other.apply_gradients(pairs)
self.one.apply_gradients(pairs)
optimizer.apply_gradients(pairs)
strategy.run(step)
"""


@pytest.mark.parametrize("lines, line", [((3,), 1), ((4,), 2), ((5, 4), 2), ((6,), 2)])
def test_an_optimizer_that_has_two_names_is_blamed_where_it_was_made(tmp_path, lines, line):
    path = tmp_path / "train.py"
    path.write_text(TWICE)
    count = variable(3, maker=Owner.OPTIMIZER, location=stack(path, 1), shape=())
    slot = variable(4, maker=Owner.OPTIMIZER, location=stack(path, 2))
    raised = replace(RAISED, location=stack(path, *lines))
    assert modes(run(count, slot, raised, outcome=Outcome.RAISED)) == [("fm10", line)]


def test_what_became_trainable_is_blamed_where_it_did(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "base.trainable = False\nbase.trainable = True\nmodel.fit(x)\nbase.trainable = True\n"
    )
    assert modes(run(TrainableLeftOut(stack(path, 3), (1,)))) == [("fm10", 2)]
    assert modes(run(TrainableLeftOut(LINE, (1,)))) == [("fm10", 7)]
    assert modes(run(TrainableLeftOut((), (1,)))) == []


def test_what_became_trainable_together_with_another(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("base.trainable, head.trainable = True, True\nname = 'base'\nmodel.fit(x)\n")
    assert modes(run(TrainableLeftOut(stack(path, 3), (1,)))) == [("fm10", 1)]


def test_what_no_step_trains_is_blamed_where_it_became_trainable(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("base.trainable = True\nbase.trainable = True\nstep(x)\n")
    left = TrainableLeftOut(stack(path, 2), (1, 2), is_unfreezing=True)
    (finding,) = diagnose(Runs([run(MINE, left)])).findings
    assert (finding.mode, finding.line) == ("fm10", 2)
    assert str(finding.message).startswith("no step trains v1 and 1 more")
    assert finding.fix.startswith("make the traced step")


def test_what_keras_leaves_frozen_is_its_fault(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("net.compile('sgd')\nbase.trainable = True\nnet.fit(x)\n")
    left = TrainableLeftOut(stack(path, 2), (1,), is_ignored=True)
    (finding,) = diagnose(Runs([run(MINE, left)])).findings
    assert (finding.line, finding.by_framework) == (2, True)
    assert repair.IGNORED in str(finding.message)


@pytest.mark.parametrize("line, blamed", [("pass", 5), ("net.compile(adam)", 3)])
def test_who_fits_is_who_chose_the_model_unless_it_is_compiled_there(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(f"def fit(net):\n    {line}\n    net.fit(x)\n\nfit(net)\n")
    assert modes(run(TrainableLeftOut(stack(path, 3, 5), (1,)))) == [("fm10", blamed)]


PROGRAM = """\
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
y = x[:, :1] - x[:, 1:2]


class Scaled(tf.keras.Model):
    def __init__(self, base):
        super().__init__()
        self.base, self.head = base, tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.head(self.base(inputs))

    STEP


with tf.distribute.MirroredStrategy().scope():
    base = tf.keras.layers.Dense(4)
    model = Scaled(base)
    base.trainable = False
    model.compile("sgd", "mse")
model.fit(x, y, batch_size=8, verbose=0)
base.trainable = True
AGAIN
model.fit(x, y, batch_size=8, verbose=0)
"""
OWN_STEP = """def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2) / tf.distribute.get_strategy().num_replicas_in_sync
        weights = self.head.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {}"""


@pytest.mark.replayed
@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize(
    "step, again, expected",
    [("", "", ["fm10"]), ("", "base.trainable = False", []), (OWN_STEP, "", [])],
    ids=["unfrozen", "frozen again", "a step of its own"],
)
def test_a_layer_that_is_unfrozen_without_compile(step, again, expected, keras, tmp_path):
    text = PROGRAM.replace("STEP", step).replace("AGAIN", again)
    found = examined(tmp_path, text, keras=keras).findings
    assert [each.mode for each in found] == expected
    if expected:
        assert found[0].line == text.splitlines().index("base.trainable = True") + 1


@pytest.mark.parametrize(
    "unfreezes, line", [("layer.trainable = True", 5), ("layer.trainable = False", 2)]
)
def test_who_has_made_more_trainable_before_the_fit_that_raises(unfreezes, line, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def run(model):\n    model.fit(x)\n\ndef tune(model):\n"
        f"    {unfreezes}\n    run(model)\n\ntune(model)\nmade()\n"
    )
    frames = (
        Frame(str(path), 2, "run"),
        Frame(str(path), 6, "tune"),
        Frame(str(path), 8, "<module>"),
    )
    slot = variable(4, maker=Owner.OPTIMIZER, location=stack(path, 9))
    raised = replace(RAISED, location=frames)
    assert modes(run(slot, raised, outcome=Outcome.RAISED)) == [("fm10", line)]
