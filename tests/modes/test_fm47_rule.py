"""The examiner's rules for fm47 that need no process: several workers that save to one path."""

import pytest
from recorded import LINE, modes, run, saved
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import ExceptionRaised, Outcome, SaveKind, Started

START = Started(1, "/program")


def worker(index, *events, **fields):
    return run(START, *events, role=Role.TASK, task=f"worker {index}", **fields)


@pytest.mark.parametrize(
    "path, kind, notes",
    [
        ("model.keras", SaveKind.MODEL, 1),
        ("/program/model.keras", SaveKind.MODEL, 1),
        ("model.keras", SaveKind.CHECKPOINT, 1),
        ("model.keras", SaveKind.ARRAYS, 0),
        ("scratch/model.keras", SaveKind.MODEL, 0),
    ],
)
def test_workers_that_save_to_one_path(path, kind, notes):
    runs = [worker(0, saved(path="model.keras")), worker(1, saved(path=path, kind=kind))]
    told = [note for note in diagnose(Runs(runs)).notes if "save to the same path" in str(note)]
    assert len(told) == notes


def test_one_worker_that_saves_twice():
    again = saved(path="model.keras"), saved(path="model.keras")
    assert not [
        note for note in diagnose(Runs([worker(0, *again)])).notes if "same path" in str(note)
    ]


@pytest.mark.parametrize(
    "task, text, expected",
    [
        ("worker 1", "{{node MergeV2Checkpoints}} did not exist", [("fm47", 7)]),
        ("", "{{node MergeV2Checkpoints}} did not exist", []),
        ("worker 1", "{{node RestoreV2}} did not exist", []),
    ],
    ids=["a worker", "one process", "another operation"],
)
def test_a_worker_whose_files_another_one_has_moved(task, text, expected):
    raised = ExceptionRaised(LINE, "NotFoundError", f"NotFoundError: {text}", ())
    fields = {"role": Role.TASK, "task": task} if task else {}
    assert modes(run(raised, outcome=Outcome.RAISED, **fields)) == expected
