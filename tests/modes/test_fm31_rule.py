"""The examiner's rule for fm31: a step that is not given to `strategy.run`, and gets the batch of all replicas."""

from dataclasses import replace

import pytest
from recorded import modes, run, stack, strategy, updated, variable, written
from strategy_clinic.observer.events import (
    BatchTaken,
    ExceptionRaised,
    GradientComputed,
    ModelCalled,
    Outcome,
)

PROGRAM = """\
def step(x):
    with tf.GradientTape() as tape:
        loss = model(x)
    return tape.gradient(loss, weights)

def train(batch):
    return step(batch)

def replicas(batch):
    return strategy.run(step, args=(batch,))

def log(losses):
    print(losses + 1)

def outer(batch):
    def inner(x):
        return tape.gradient(loss, weights)
    print(batch + 1)

train(batch)
"""
MESSAGE = "TypeError: unsupported operand type(s) for +: 'PerReplica' and 'int'"


@pytest.mark.parametrize(
    "lines, expected",
    [
        ((3, 7, 20), ("fm31", 7)),
        ((3, 10), ("fm39", 10)),
        ((13, 20), ("fm39", 20)),
        ((18, 20), ("fm39", 20)),
    ],
    ids=["a step", "in run", "a result", "beside a step"],
)
def test_who_gets_the_values_of_all_replicas(tmp_path, lines, expected):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    raised = ExceptionRaised(
        stack(path, *lines), "TypeError", f"Traceback (most recent call last):\n{MESSAGE}", ()
    )
    assert modes(run(raised, outcome=Outcome.RAISED)) == [expected]


WEIGHT = variable(1, copies=2, parts=(10, 11))


@pytest.mark.parametrize(
    "replicas, weight, function, told",
    [
        ([1], WEIGHT, "step", True),
        ([1, 2], WEIGHT, "step", False),
        ([1], variable(1), "step", False),
        ([], WEIGHT, "step", False),
        ([1], WEIGHT, "main", False),
    ],
    ids=["outside", "in replicas, too", "one copy", "no model", "another function"],
)
def test_a_step_that_no_replica_runs(tmp_path, replicas, weight, function, told):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    place = stack(path, 4, function="step") + stack(path, 7, 20, function="main")
    called = stack(path, 3, function=function)
    calls = [ModelCalled(called, 8, each, (1,)) for each in replicas]
    update = replace(updated(trains=(1,)), location=place)
    recording = run(strategy(2), weight, *calls, GradientComputed(place, 0, 1), update)
    assert recording.trains_alone == told
    assert ("fm31", 7) in modes(recording) if told else "fm31" not in dict(modes(recording))
    for seen in (BatchTaken(place, (4, 4)), written(number=9, replicas=2)):
        before = replace(recording, events=(seen, *recording.events))
        after = replace(recording, events=(*recording.events, seen))
        assert (before.trains_alone, after.trains_alone) == (False, told)
