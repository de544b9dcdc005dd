"""The examiner's rules for fm14: copies that part from what they were copied from."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, loaded, modes, run, stack, updated, written
from strategy_clinic.observer.events import (
    CopyCalled,
    Frame,
    OutdatedCopyUsed,
    Owner,
    WeightsCopied,
)

COPIED = WeightsCopied(LINE, "set_weights", (1, 2), (3, 4), equal=True)
TOGETHER = updated(trains=(1, 2, 3, 4))


def test_a_copy_that_is_trained_together_with_its_source():
    (finding,) = found(run(COPIED, TOGETHER))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 trains both" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [COPIED, updated(trains=(1, 2))],
        [COPIED, updated(trains=(3, 4))],
        [COPIED, TOGETHER, replace(COPIED, equal=False)],
        [replace(COPIED, function="clone_model", equal=False), TOGETHER],
        [TOGETHER, COPIED],
        [replace(COPIED, location=()), TOGETHER],
    ],
    ids=[
        "a target network or a teacher",
        "a model that starts from another",
        "copied again and again",
        "a clone with weights of its own, as in an ensemble",
        "trained before",
        "on no line",
    ],
)
def test_a_copy_that_is_meant(events):
    assert modes(run(*events)) == []


def test_a_copy_that_is_used_after_its_source_was_trained():
    (finding,) = found(run(COPIED, OutdatedCopyUsed(OTHER, "set_weights", LINE, (3, 4))))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 uses the copy after that training" in str(finding.proof)
    assert modes(run(OutdatedCopyUsed(OTHER, "set_weights", (), (3, 4)))) == []


# Clones of models that have learnt

CLONE = WeightsCopied(LINE, "clone_model", (1, 2), (3, 4), equal=False)
LEARNT = written(writer=Owner.OPTIMIZER)
STEP = """\
def train_step():
    answers = teacher(x)
    optimizer.apply_gradients(pairs)

def main():
    print(teacher(x))
    for batch in data:
        optimizer.apply_gradients(pairs)
    student.fit(data)
"""


@pytest.fixture
def at(tmp_path):
    """Returns the stack of a line in the functions of STEP."""
    (tmp_path / "train.py").write_text(STEP)
    return lambda line: stack(tmp_path / "train.py", line, function="step" if line < 5 else "main")


def test_a_clone_that_is_called_in_training_and_keeps_random_weights(at):
    student = updated(at(3), trains=(8,))
    (finding,) = found(run(LEARNT, CLONE, CopyCalled(at(2), (3, 4)), student))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 2 calls it in the training of another model, at line 3" in str(finding.proof)
    from_config = replace(CLONE, function="from_config")
    (finding,) = found(run(LEARNT, from_config, CopyCalled(at(2), (3, 4)), student))
    assert str(finding.message).startswith("from_config copies no weights")
    from_file = loaded(variables=(1, 2))
    assert modes(run(from_file, CLONE, CopyCalled(at(2), (3, 4)), student)) == [("fm14", 7)]


def test_a_clone_that_a_loss_calls_in_fit(at):
    call = CopyCalled((Frame("loss.py", 3, "loss"), *at(9)), (3, 4))
    assert modes(run(LEARNT, CLONE, call, updated(at(9), trains=(8,)))) == [("fm14", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [CLONE, LEARNT],
        [LEARNT, CLONE, written(number=3)],
        [LEARNT, CLONE, loaded(variables=(3, 4))],
        [LEARNT, CLONE, updated(trains=(3, 4))],
        [LEARNT, replace(CLONE, equal=True)],
        [LEARNT, replace(CLONE, location=())],
        [LEARNT, replace(CLONE, function="deepcopy")],
        [LEARNT, replace(CLONE, target=(1, 2))],
    ],
    ids=[
        "of an untrained model",
        "filled",
        "loaded",
        "trained",
        "with the same values",
        "on no line",
        "a copy with its weights",
        "of the same layers",
    ],
)
def test_a_clone_with_weights_of_its_own(at, events):
    used = CopyCalled(at(2), (3, 4)), updated(at(3), trains=(8,))
    assert modes(run(*events, *used)) == []


@pytest.mark.parametrize("call, update", [(6, 8), (6, 9)], ids=["before a loop", "before fit"])
def test_a_clone_that_is_called_outside_of_training(at, call, update):
    used = CopyCalled(at(call), (3, 4)), updated(at(update), trains=(8,))
    assert modes(run(LEARNT, CLONE, *used)) == []
