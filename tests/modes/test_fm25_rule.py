"""The examiner's rule for fm25: a model loaded outside the scope that is trained on one device."""

from dataclasses import replace

import pytest
from recorded import OTHER, found, loaded, modes, run, saved, stack, updated, variable, written
from strategy_clinic.observer.events import ModelCalled, Owner, SaveKind, VariableSharedCentrally

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


# A model that was made outside the scope

STUDENT = [variable(1, copies=2, location=OTHER), updated(trains=(1,))]
TEACHER = variable(5)
BY_REPLICAS = called(5, replicas=2)


def test_a_model_outside_the_scope_that_replicas_call():
    (finding,) = found(run(*STUDENT, TEACHER, BY_REPLICAS))
    assert (finding.mode, finding.line) == ("fm25", 7)
    assert str(finding.proof) == "observed on 2 devices: 2 replicas read them there at line 20"


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
