"""The examiner's rule for fm56: the same random numbers on every replica."""

from dataclasses import replace

import pytest
from recorded import LINE, found, run, stack, strategy
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import BatchTaken, ModelCalled, NumbersRepeated, Owner

DRAWN = NumbersRepeated(LINE, Owner.USER, (8, 3), 2)
CALLED = ModelCalled(LINE, 8, 2, (1,))


@pytest.mark.parametrize(
    "events",
    [
        [DRAWN, CALLED],
        [replace(DRAWN, drawer=Owner.RANDOM), CALLED],
        [replace(DRAWN, shape=(None, 3)), CALLED],
        [DRAWN, BatchTaken(LINE, (8, 8))],
    ],
    ids=["examples", "by a function of Keras", "examples of any number", "without a model"],
)
def test_numbers_for_each_example(events):
    (finding,) = found(run(strategy(), *events))
    assert (finding.mode, finding.line) == ("fm56", 7)
    assert "each of 2 replicas draws the same random numbers" in str(finding.message)


CONSTANT = """\
def step(batch):
    noise = tf.random.stateless_normal(batch.shape, seed=[1, 2])
    with tf.GradientTape() as tape:
        loss = model(batch + noise)
    return tape.gradient(loss, weights)

def evaluate(batch):
    def inner():
        return tape.gradient(loss, weights)
    return tf.random.stateless_normal(batch.shape, seed=[1, 2])

model.fit(data)
"""


@pytest.mark.parametrize("lines, count", [((2,), 1), ((10, 12), 1), ((10,), 0)])
def test_numbers_that_are_the_same_in_each_step(tmp_path, lines, count):
    path = tmp_path / "train.py"
    path.write_text(CONSTANT)
    drawn = replace(DRAWN, location=stack(path, *lines), changes=False)
    assert len(found(run(strategy(), drawn, CALLED))) == count


@pytest.mark.parametrize(
    "events",
    [
        [replace(DRAWN, shape=()), CALLED],
        [replace(DRAWN, shape=(3,)), CALLED],
        [replace(DRAWN, shape=(16, 3)), CALLED],
        [replace(DRAWN, location=()), CALLED],
        [CALLED],
    ],
    ids=["one number", "one for each feature", "of another size", "no line", "none"],
)
def test_numbers_that_may_be_the_same(events):
    assert found(run(strategy(), *events)) == []


@pytest.mark.parametrize(
    "drawn",
    [
        replace(DRAWN, drawer=Owner.LAYER),
        replace(DRAWN, of_generator=True),
        replace(DRAWN, drawer=Owner.RANDOM, of_generator=True),
    ],
    ids=["by a layer", "with its generator's seed", "by its function"],
)
def test_what_keras_draws_is_a_note(drawn):
    diagnosis = diagnose(Runs([run(strategy(), drawn, CALLED)]))
    assert diagnosis.findings == []
    (note,) = diagnosis.notes
    assert "layers of Keras 3" in note and "your program is right" in note
