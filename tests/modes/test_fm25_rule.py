"""The examiner's rule for fm25: a model loaded outside the scope that is trained on one device."""

from dataclasses import replace

import pytest
from recorded import (
    OTHER,
    found,
    loaded,
    modes,
    run,
    saved,
    stack,
    strategy,
    updated,
    variable,
    written,
)
from score_restarts import examined as examined_restarts
from strategy_clinic.examiner.recording import Role
from strategy_clinic.observer.events import (
    ExceptionRaised,
    ModelCalled,
    Outcome,
    Owner,
    SaveKind,
    VariableSharedCentrally,
)

MIRRORED = variable(1, copies=2, parts=(10, 11))
SAVED = [variable(2), saved(held=[1], kind=SaveKind.MODEL)]
OUTSIDE = loaded(in_scope=False)


def called(number, replicas=1):
    return ModelCalled(OTHER, 8, replicas, (number,))


TRAINED = updated(trains=(2,))


def test_a_model_that_is_trained_on_one_device():
    assert modes(run(MIRRORED, *SAVED, OUTSIDE, TRAINED)) == [("fm25", 7)]


def test_another_file_that_is_loaded_in_the_scope():
    other = loaded(path="ck-2")
    assert modes(run(MIRRORED, *SAVED, OUTSIDE, other, TRAINED)) == [("fm25", 7)]


def test_a_model_saved_from_central_storage():
    central = [variable(1), VariableSharedCentrally(1), *SAVED, OUTSIDE, TRAINED]
    assert modes(run(*central)) == [("fm25", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [MIRRORED, *SAVED, OUTSIDE],
        [called(1), MIRRORED, *SAVED, OUTSIDE, called(2)],
        [MIRRORED, *SAVED, TRAINED, OUTSIDE, called(2)],
        [MIRRORED, *SAVED, OUTSIDE, updated(trains=(1,)), called(2)],
        [MIRRORED, *SAVED, OUTSIDE, loaded(), TRAINED],
        [variable(1), variable(2), saved(held=[1]), OUTSIDE, TRAINED],
        [MIRRORED, *SAVED, loaded(), TRAINED],
        [MIRRORED, *SAVED, replace(OUTSIDE, replicas=1), TRAINED],
        [MIRRORED, *SAVED, replace(OUTSIDE, location=()), TRAINED],
        [MIRRORED, *SAVED, replace(OUTSIDE, undistributed=()), TRAINED],
    ],
    ids=[
        "not used",
        "evaluated",
        "trained only before it was loaded",
        "the distributed one is trained on",
        "loaded in the scope, too",
        "on one device all along",
        "loaded in the scope",
        "one replica",
        "no line",
        "distributed where it is",
    ],
)
def test_a_model_that_is_not_trained_on_one_device(events):
    assert modes(run(*events)) == []


def test_a_restore_outside_the_scope_into_central_storage():
    """A model stays where the scope has put it; only the count of saves, which no strategy has made, is a plain variable."""
    count = variable(3, maker=Owner.CHECKPOINT)
    restored = loaded(function="restore", in_scope=False, variables=(1, 3), undistributed=(1, 3))
    trained = updated(trains=(1,))
    facts = [variable(1), VariableSharedCentrally(1), count, trained, saved(held=[1, 3]), restored]
    assert modes(run(*facts)) == []
    assert modes(run(*facts, updated(trains=(3,)))) == [("fm25", 7)]


# A model that a program loads when it is started again


def started_again(*events, before=(MIRRORED, SAVED[1])):
    stopped = run(*before, role=Role.STOPPED)
    return modes(run(*events, role=Role.RESTARTED, before=stopped))


def test_a_restart_that_trains_what_it_has_loaded_on_one_device():
    """The numbers of variables are those of another process: there, 1 is a variable of the model on one device."""
    alone = replace(OUTSIDE, variables=(1,), undistributed=(1,))
    assert started_again(variable(1), alone, updated(trains=(1,))) == [("fm25", 7)]
    assert started_again(variable(2), OUTSIDE, TRAINED) == [("fm25", 7)]


@pytest.mark.parametrize(
    "events, before",
    [
        ([variable(2), OUTSIDE], (MIRRORED, SAVED[1])),
        ([variable(2), loaded(), TRAINED], (MIRRORED, SAVED[1])),
        ([variable(2), replace(OUTSIDE, path="ck-2"), TRAINED], (MIRRORED, SAVED[1])),
        ([variable(2), OUTSIDE, TRAINED], (variable(1), SAVED[1])),
        ([replace(MIRRORED, number=2), OUTSIDE, TRAINED], (MIRRORED, SAVED[1])),
        ([variable(2), replace(OUTSIDE, replicas=1), TRAINED], (MIRRORED, SAVED[1])),
        ([variable(2), OUTSIDE, variable(3), updated(trains=(3,))], (MIRRORED, SAVED[1])),
    ],
    ids=[
        "not trained",
        "in the scope",
        "a file from elsewhere",
        "trained on one device before",
        "distributed where it is",
        "no strategy with several replicas",
        "only a copy of it is trained",
    ],
)
def test_a_restart_that_trains_as_before(events, before):
    assert started_again(*events, before=before) == []


RESUMED = """
import os
import numpy as np
import tensorflow as tf

x, y = np.ones((16, 3), "float32"), np.ones((16, 1), "float32")
strategy = tf.distribute.MirroredStrategy()

def new_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

with strategy.scope():
    model = new_model()
if os.path.exists("last.keras"):
    model = tf.keras.models.load_model("last.keras")
done = int(model.optimizer.iterations.numpy()) // 4
model.fit(x, y, batch_size=4, epochs=4, initial_epoch=done, verbose=0, callbacks=[
    tf.keras.callbacks.ModelCheckpoint("last.keras"),
])
"""
LOADS = '    model = tf.keras.models.load_model("last.keras")'
IN_SCOPE = LOADS.replace("    model", "    with strategy.scope():\n        model")
WEIGHTS_ONLY = "    loaded = tf.keras.models.load_model('last.keras')\n    model.set_weights(loaded.get_weights())"


@pytest.mark.replayed
@pytest.mark.parametrize(
    "loads, expected",
    [(LOADS, [("fm25", 17)]), (IN_SCOPE, []), (WEIGHTS_ONLY, [])],
    ids=["outside", "in the scope", "for its weights"],
)
def test_a_program_that_loads_its_model_when_it_is_started_again(loads, expected, tmp_path):
    examination = examined_restarts(tmp_path, RESUMED.replace(LOADS, loads), 3)
    found = [(each.mode, each.line) for each in examination.findings]
    assert found == expected


# A model that was made outside the scope

STUDENT = [variable(1, copies=2, location=OTHER), updated(trains=(1,))]
TEACHER = variable(5)
BY_REPLICAS = called(5, replicas=2)


def test_a_model_outside_the_scope_that_replicas_call():
    (finding,) = found(run(*STUDENT, TEACHER, BY_REPLICAS))
    assert (finding.mode, finding.line) == ("fm25", 7)
    assert str(finding.proof).endswith("2 replicas read them there at line 20")


def test_a_teacher_that_was_trained_on_one_device_before():
    assert modes(run(*STUDENT, TEACHER, updated(trains=(5,)), BY_REPLICAS)) == [("fm25", 7)]


def test_the_line_that_made_this_model_and_no_other():
    inner, mine, theirs = (stack("/program/train.py", n) for n in (3, 12, 11))
    student = variable(1, copies=2, location=(*inner, *theirs))
    teacher = variable(5, location=(*inner, *mine))
    assert modes(run(student, STUDENT[1], teacher, BY_REPLICAS)) == [("fm25", 12)]


@pytest.mark.parametrize(
    "events",
    [
        [*STUDENT, replace(TEACHER, copies=2), BY_REPLICAS],
        [*STUDENT, TEACHER, called(5)],
        [replace(STUDENT[0], copies=0), STUDENT[1], TEACHER, BY_REPLICAS],
        [*STUDENT, TEACHER, written(number=5, writer=Owner.METRIC), BY_REPLICAS],
        [*STUDENT, TEACHER, BY_REPLICAS, updated(trains=(5,))],
        [*STUDENT, TEACHER, VariableSharedCentrally(5), BY_REPLICAS],
        [*STUDENT, replace(TEACHER, maker=Owner.RANDOM), BY_REPLICAS],
        [*STUDENT, TEACHER, replace(BY_REPLICAS, variables=(1, 5))],
    ],
    ids=[
        "in the scope",
        "called on the host",
        "nothing is distributed",
        "written to, which is fm23",
        "trained by them",
        "central",
        "a seed",
        "a part of another model",
    ],
)
def test_a_model_that_is_where_it_belongs(events):
    assert modes(run(*events)) == []


# What is loaded outside the scope and trained in it raises

MISMATCH = ExceptionRaised(
    OTHER,
    "ValueError",
    "ValueError: Trying to create optimizer slot variable under the scope for tf.distribute.Strategy (<x>), "
    "which is different from the scope used for the original variable (<y>).",
    (),
)


@pytest.mark.parametrize(
    "events, mode",
    [
        ([strategy(), variable(2), OUTSIDE], "fm25"),
        ([variable(1), strategy(), variable(2), OUTSIDE], "fm25"),
        ([strategy(), variable(1), variable(2), OUTSIDE], "fm03"),
        ([strategy(), variable(1, maker=Owner.CHECKPOINT), variable(2), OUTSIDE], "fm03"),
        ([strategy(), variable(2), replace(OUTSIDE, in_scope=True)], "fm03"),
        ([strategy(), variable(2)], "fm03"),
        ([strategy(), variable(2), replace(OUTSIDE, location=())], "fm03"),
    ],
    ids=[
        "loaded",
        "another model before there is a strategy",
        "another model, too",
        "another model, which was made by a load",
        "loaded in the scope",
        "made",
        "on no line",
    ],
)
def test_weights_of_another_scope_that_were_loaded(events, mode):
    ((named, line),) = modes(run(*events, MISMATCH, outcome=Outcome.RAISED))
    assert named == mode and (mode == "fm03" or line == 7)
