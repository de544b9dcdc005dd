"""The examiner's rule for fm46: a learning rate that a restore has brought back."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    ended,
    found,
    loaded,
    modes,
    run,
    saved,
    stack,
    state,
    updated,
    variable,
    written,
)
from score_restarts import examined
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.observer.events import (
    Frame,
    Held,
    LearningRateRead,
    LearningRateRestored,
    LearningRateWritten,
    OptimizerState,
    Outcome,
    Owner,
    ProgramState,
)

OLD, NEW = "0.25", "0.05"
FIRST = updated(steps=0, learning_rate=OLD, variables=(4, 5))
KEPT = saved(optimizers=(state(steps=3, learning_rate=OLD, variables=(4, 5)),))


def replaced(location=LINE):
    return LearningRateRestored(location, before=0.05, after=0.25, variables=(7, 8))


def next_step(rate):
    return updated(steps=3, learning_rate=rate, variables=(7, 8, 9))


def test_an_optimizer_that_trains_on_at_the_rate_of_a_file():
    assert modes(run(FIRST, KEPT, replaced(), next_step(OLD))) == [("fm46", 7)]


CHOSEN = LearningRateWritten((Frame("/program/train.py", 5, "main"),), number=8, value=0.05)
BEFORE, LOADED = saved(path="ck-1", held=(2, 8)), loaded(variables=(2, 8), location=LINE)


COPIED_AT = (Frame("/program/train.py", 6, "main"),)
COPIED = [written(number=n, location=COPIED_AT, writer=Owner.OPTIMIZER) for n in (7, 8, 9)]
OVER = LearningRateWritten(COPIED_AT, number=8, value=0.25)


def test_a_rate_that_is_set_before_the_optimizer_gets_the_values_of_another_one():
    (finding,) = found(run(CHOSEN, OVER, *COPIED, next_step(OLD)))
    assert (finding.mode, finding.line) == ("fm46", 5)
    assert str(finding.message).endswith("of another one, which replace 0.05")


@pytest.mark.parametrize(
    "events",
    [
        [OVER, *COPIED, CHOSEN, next_step(NEW)],
        [CHOSEN, next_step(NEW), OVER, *COPIED, next_step(OLD)],
        [CHOSEN, OVER, next_step(OLD)],
        [CHOSEN, OVER, *(replace(e, writer=Owner.CHECKPOINT) for e in COPIED), next_step(OLD)],
        [CHOSEN, replace(OVER, value=0.05), *COPIED, next_step(NEW)],
        [CHOSEN, next_step(OLD), OVER, *COPIED],
        [CHOSEN, OVER, *COPIED],
        [replace(CHOSEN, location=COPIED_AT), OVER, *COPIED, next_step(OLD)],
    ],
    ids=[
        "set after the copy",
        "used before the copy",
        "only the rate is set",
        "a restore",
        "the same rate",
        "as training writes",
        "not trained on",
        "twice by callbacks of one fit",
    ],
)
def test_a_rate_that_is_set_and_used(events):
    assert modes(run(*events)) == []


BEST = state(steps=4, variables=(7, 8))
OF_BEST = replace(BEFORE, optimizers=(BEST,))


def test_a_rate_that_is_set_just_before_the_restore():
    assert modes(run(BEFORE, CHOSEN, LOADED, replaced())) == [("fm46", 5)]
    trained_on = ended(optimizers=(replace(BEST, steps=6),))
    assert modes(run(OF_BEST, CHOSEN, LOADED, replaced(), trained_on)) == [("fm46", 5)]


@pytest.mark.parametrize(
    "events",
    [
        [CHOSEN, LOADED, replaced()],
        [BEFORE, replace(CHOSEN, number=3), LOADED, replaced()],
        [BEFORE, replace(CHOSEN, value=0.1), LOADED, replaced()],
        [BEFORE, replace(CHOSEN, location=LINE), LOADED, replaced()],
        [BEFORE, replace(CHOSEN, location=stack("train.py", 5, 6)), LOADED, replaced()],
        [BEFORE, CHOSEN, LOADED, replaced(), replace(CHOSEN, location=OTHER)],
        [BEFORE, LOADED, replaced(), CHOSEN],
        [BEFORE, CHOSEN, LOADED, replaced(())],
        [OF_BEST, CHOSEN, LOADED, replaced(), ended(optimizers=(BEST,))],
    ],
    ids=[
        "a file of another run",
        "another optimizer",
        "another rate",
        "by the restore itself",
        "elsewhere",
        "set again",
        "set later",
        "no line",
        "nothing is trained after it",
    ],
)
def test_a_rate_that_is_set_and_not_lost(events):
    assert modes(run(*events)) == []


@pytest.mark.parametrize(
    "events",
    [
        [FIRST, KEPT, replaced(), next_step(NEW)],
        [FIRST, KEPT, replaced()],
        [replaced(), next_step(OLD)],
        [FIRST, KEPT, replaced(()), next_step(OLD)],
        [updated(steps=0, learning_rate="1.0", variables=(4, 5)), KEPT, replaced(), next_step(OLD)],
        [FIRST, KEPT, replaced(), next_step("{'class_name': 'ExponentialDecay'}")],
    ],
    ids=["set again", "no step", "from elsewhere", "no line", "lowered in training", "schedule"],
)
def test_a_rate_that_is_meant(events):
    assert modes(run(*events)) == []


def test_the_line_is_where_both_are_decided():
    inner = (*stack("/program/train.py", 3, function="load"), *OTHER)
    assert modes(run(FIRST, KEPT, replaced(inner), next_step(OLD))) == [("fm46", 20)]


# A schedule, of which a file has only the count of steps


def schedule(rate, steps, **changes):
    return state(
        learning_rate=f"{{'config': {{'initial_learning_rate': {rate}}}}}", steps=steps, **changes
    )


OF_FILE = saved(optimizers=(schedule(0.1, 3),))
COUNT_LOADED = loaded(variables=(7,))


def begun(rate, steps=3, **changes):
    new = schedule(rate, steps, variables=(7, 8), **changes)
    return replace(updated(), optimizer=new)


def test_a_new_schedule_that_goes_on_from_the_count_of_a_file():
    assert modes(run(OF_FILE, COUNT_LOADED, begun(0.05))) == [("fm46", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [OF_FILE, COUNT_LOADED, begun(0.1)],
        [OF_FILE, COUNT_LOADED, begun(0.05, steps=0)],
        [OF_FILE, COUNT_LOADED, begun(0.05, kind="SGD")],
        [KEPT, COUNT_LOADED, begun(0.05)],
        [OF_FILE, loaded(variables=(2,)), begun(0.05)],
    ],
    ids=["the same", "from its beginning", "another optimizer", "a number before", "not loaded"],
)
def test_a_schedule_that_is_meant(events):
    assert modes(run(*events)) == []


# A program that gives its optimizer another rate when it is started again

MADE = """\
optimizer = Adam(NEW)
optimizer = Adam()
optimizer = Adam(beta_1=0.8)
optimizer = Adam(learning_rate=NEW)
model.compile("adam")
"""
AT_OLD_RATE = next_step(OLD)
AT_ZERO = updated(steps=0, learning_rate=OLD, variables=(4, 5))


def restarted(folder, *, line=1, stopped=(AT_ZERO, KEPT), then=AT_OLD_RATE, path="ck-1"):
    """A second start: its optimizer is made on a line, filled from a file, and used."""
    (folder / "train.py").write_text(MADE)
    at = stack(folder / "train.py", line)
    made = [variable(n, shape=(), maker=Owner.OPTIMIZER, location=at) for n in (7, 8)]
    reads = loaded(path=path, variables=(7, 8))
    own = LearningRateWritten(LINE, 8, 0.25)  # by the restore itself
    rates = [variable(n, shape=(), maker=Owner.OPTIMIZER) for n in (4, 5)]
    before = run(*rates, *stopped, role=Role.STOPPED)
    steps = [then] if then else []
    return run(*made, reads, own, replaced(), *steps, role=Role.RESTARTED, before=before)


@pytest.mark.parametrize("line", [1, 4])
def test_another_rate_at_the_second_start(tmp_path, line):
    assert modes(restarted(tmp_path, line=line)) == [("fm46", 7)]


SET = LearningRateWritten(OTHER, 5, 0.25)
SET_IN_GRAPH = written(number=5, writer=Owner.USER)


@pytest.mark.parametrize(
    "changes",
    [
        {"line": 2},
        {"line": 3},
        {"line": 5},
        {"stopped": (updated(steps=0, learning_rate="1.0", variables=(4, 5)), KEPT)},
        {"stopped": (AT_ZERO, SET, KEPT)},
        {"stopped": (AT_ZERO, SET_IN_GRAPH, KEPT)},
        {"stopped": (KEPT,)},
        {"path": "ck-2"},
        {"then": next_step(NEW)},
        {"then": None},
    ],
    ids=[
        "no rate of its own",
        "another setting",
        "a name",
        "lowered in training",
        "set by a schedule",
        "set in a graph",
        "the first run went on, too",
        "a file from elsewhere",
        "set again",
        "no step",
    ],
)
def test_a_rate_at_the_second_start_that_is_meant(tmp_path, changes):
    assert modes(restarted(tmp_path, **changes)) == []


def test_a_schedule_that_sets_the_rate_in_the_second_start(tmp_path):
    recording = restarted(tmp_path)
    later = LearningRateWritten(OTHER, 8, 0.25)
    assert modes(replace(recording, events=(*recording.events, later))) == []


SLOWER = """
import os
import numpy as np, tensorflow as tf
x, y = np.ones((16, 3), "float32"), np.ones((16, 1), "float32")
strategy = tf.distribute.MirroredStrategy()
rate = 0.001 if os.path.exists("saved") else 0.01
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(rate), "mse")
    model.optimizer.build(model.trainable_variables)
done = tf.Variable(0, trainable=False)
checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, done=done)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
while done.numpy() < 4:
    model.fit(x, y, batch_size=4, verbose=0)
    done.assign_add(1)
    manager.save()
"""
RESTORES = "checkpoint.restore(manager.latest_checkpoint)\n"
SET_AGAIN = (RESTORES, f"{RESTORES}model.optimizer.learning_rate = rate\n")
BY_DEFAULT = ("Adam(rate)", "(Adam() if os.path.exists('saved') else Adam(0.01))")
BY_SCHEDULE = (
    "verbose=0)",
    "verbose=0, callbacks=[tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.01)])",
)


@pytest.mark.replayed
@pytest.mark.parametrize("keras", [3, 2])
@pytest.mark.parametrize(
    "edit, lines",
    [(("", ""), [14]), (SET_AGAIN, []), (BY_DEFAULT, []), (BY_SCHEDULE, [])],
    ids=["another rate", "set again", "a default until it is restored", "a schedule sets it"],
)
def test_a_program_that_trains_more_slowly_when_it_is_started_again(edit, lines, keras, tmp_path):
    text = SLOWER.replace(*edit, 1).replace("(Adam", "(tf.keras.optimizers.Adam")
    text = text.replace("else Adam", "else tf.keras.optimizers.Adam")
    examination = examined(tmp_path, text, keras)
    assert [(each.mode, each.line) for each in examination.findings] == [
        ("fm46", line) for line in lines
    ]


# A rate that is read before the restore, and written back

PROGRAM = """\
rate = float(optimizer.learning_rate.numpy())
print(float(optimizer.learning_rate.numpy()))

checkpoint.restore(path)
optimizer.learning_rate.assign(rate)
"""


def read_and_written(folder, line, *, value=0.05, rate=0.05, then=(), text=PROGRAM):
    path = folder / "train.py"
    path.write_text(text)
    read = LearningRateRead(stack(path, line), 7, value)
    write = LearningRateWritten(stack(path, 5), 7, rate)
    return run(read, replaced(stack(path, 4)), *then, write)


@pytest.mark.parametrize("given", ["rate =", "rate: float =", "if again: rate ="])
def test_a_rate_that_is_read_too_early(tmp_path, given):
    (finding,) = found(read_and_written(tmp_path, 1, text=PROGRAM.replace("rate =", given, 1)))
    assert (finding.mode, finding.line) == ("fm46", 1)
    assert "before the restore, which replaces 0.05 by 0.25" in str(finding.message)
    assert str(finding.proof).endswith("0.05 was written back at line 5")


@pytest.mark.parametrize(
    "line, changes",
    [
        (2, {}),
        (1, {"rate": 0.25}),
        (1, {"value": 0.25, "rate": 0.25}),
        (1, {"then": [LearningRateWritten(OTHER, 7, 0.25)]}),
        (1, {"then": [LearningRateWritten(OTHER, 7, 0.1)]}),
    ],
    ids=["printed", "another rate", "the restored rate", "as restored", "chosen first"],
)
def test_a_rate_that_is_not_written_back(tmp_path, line, changes):
    assert modes(read_and_written(tmp_path, line, **changes)) == []


def test_a_rate_that_is_read_after_the_restore(tmp_path):
    recording = read_and_written(tmp_path, 1)
    read, restored, write = recording.events
    assert modes(run(restored, read, write)) == []
    assert modes(run(read, write, restored)) == []


# A rate that is set below the line that saves

LOOP = """\
while more:
    step()
    rate.assign(next_rate)
    checkpoint.save(path)
    rate.assign(next_rate)
for each in others:
    rate.assign(next_rate)
"""


def lowered(folder, line=5, net="(1,) 0.4;", mine="0.1"):
    """A program that is killed after 2 of 4 updates; a restart makes the others with the rate that was saved."""
    path = folder / "train.py"
    path.write_text(LOOP)

    def after(updates, rate, net="(1,) 0.5;"):
        names = (Held("", "", "net", net),)
        optimizer = (OptimizerState("SGD", (1,), updates, (4, 5), rate),)
        save = saved(location=stack(path, 4, function="<module>"), optimizers=optimizer)
        return ProgramState(updates, names), save

    made = variable(1), updated()
    write = LearningRateWritten(stack(path, line, function="<module>"), number=5, value=0.05)
    events = *made, *after(2, "0.1"), write, *after(4, "0.05"), ended({1: [0.5]})
    whole = run(*events)
    again = run(*events, devices=1, role=Role.COMPARED)
    stopped = run(*made, *after(2, "0.1"), outcome=Outcome.KILLED)
    events = loaded(path="ck-1"), *made, *after(4, mine, net), write, ended({1: [0.4]})
    fields = {"moment": Moment.BETWEEN, "before": stopped, "whole": whole}
    return run(*events, role=Role.RESTARTED, **fields), again


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, [("fm46", 5)]),
        ({"line": 3}, []),
        ({"line": 7}, []),
        ({"net": "(1,) 0.5;"}, [("fm54", 4)]),
        ({"mine": "0.05"}, []),
    ],
    ids=["below", "above", "another loop", "with the same weights", "the same rate"],
)
def test_a_rate_that_is_set_after_the_save(tmp_path, fields, expected):
    assert [
        each for each in modes(*lowered(tmp_path, **fields)) if each[0] != "restart"
    ] == expected
