"""What an examination makes of its recordings: which processes a program asks for, and which failures are its own."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from recorded import LINE, OTHER, run, stack, strategy
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.engine import NOT_REPEATED, Diagnosis
from strategy_clinic.examiner.findings import Location, Text
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.restarts import RESTART
from strategy_clinic.examiner.rule import observed
from strategy_clinic.examiner.runs import cluster, plan
from strategy_clinic.examiner.runs.progress import FindingKnown
from strategy_clinic.examiner.runs.refused import require_no_refusal
from strategy_clinic.observer.events import (
    BatchTaken,
    ClusterStrategyRequested,
    ExceptionRaised,
    LookedFor,
    ObserverFailed,
    Outcome,
    WriteRefused,
)


@pytest.mark.parametrize(
    "event, asked",
    [
        (ClusterStrategyRequested(LINE, "parameter_server"), "parameter_server"),
        (ExceptionRaised(LINE, "KeyError", "KeyError: 'TF_CONFIG'", ()), "multi_worker"),
        (ExceptionRaised(LINE, "KeyError", "KeyError: 'other'", ()), ""),
        (strategy(), ""),
    ],
)
def test_which_processes_a_program_asks_for(event, asked):
    assert cluster.requested_cluster(run(event)) == asked


ALONE = '{"cluster": {"worker": ["localhost:12345"]}, "task": {"type": "worker", "index": 0}}'
TWO = ALONE.replace('["', '["localhost:12346", "')


@pytest.mark.parametrize(
    "config, asked",
    [
        ("", "multi_worker"),
        (ALONE, ""),
        (TWO, "multi_worker"),
        ("{}", "multi_worker"),
        ("no", "multi_worker"),
    ],
)
def test_a_program_that_sets_its_own_cluster_of_one_task_is_run_alone(config, asked):
    """Each process of a cluster would open the port that the program names."""
    assert (
        cluster.requested_cluster(run(ClusterStrategyRequested(LINE, "multi_worker", config)))
        == asked
    )


def test_tasks_of_a_cluster_of_other_machines_are_not_run():
    requested = ClusterStrategyRequested(LINE, "multi_worker", TWO.replace("localhost", "10.0.0.7"))
    ended, begun = run(requested, outcome=Outcome.STOPPED), run(requested)
    assert [cluster.requested_cluster(each) for each in (ended, begun)] == ["", "multi_worker"]


REFUSES = ExceptionRaised(LINE, "AssertionError", "AssertionError: 2 GPUs", ())


def test_a_program_that_refuses_fewer_devices_has_not_failed():
    refused = run(REFUSES, devices=1, role=Role.COMPARED, outcome=Outcome.RAISED, status=1)
    assert plan.failed_run([run(), refused]) is None
    assert plan.uncompared([run(), refused]) == [
        "on 1 device it raised with status 1: AssertionError: 2 GPUs, so it was not compared there"
    ]


def test_a_program_that_fails_on_all_devices_has_failed():
    failed = run(REFUSES, devices=1, outcome=Outcome.RAISED, status=1)
    assert plan.failed_run([run(), failed]) is failed
    assert plan.ending(failed) == "raised with status 1: AssertionError: 2 GPUs"
    assert plan.uncompared([run(), failed]) == []


@pytest.mark.parametrize("ends_well", [True, False])
def test_of_a_restart_from_a_later_moment_only_a_good_end_tells_something(ends_well, monkeypatch):
    """A file may be written just after the save; that the later one is half a file is no one's question."""
    raised = ExceptionRaised(LINE, "FileNotFoundError", "FileNotFoundError: 'log.csv'", ())
    failed = run(LookedFor(LINE, "log.csv", False), raised, role=Role.RESTARTED)
    failed = replace(failed, moment=Moment.AFTER, outcome=Outcome.RAISED)
    outcome = Outcome.FINISHED if ends_well else Outcome.RAISED
    later = run(role=Role.RESTARTED, moment=Moment.DURING, outcome=outcome)
    planned = plan.Plan(SimpleNamespace())
    planned.recordings = [run(), failed]
    monkeypatch.setattr(planned, "restart", lambda *_: planned.recordings.append(later))
    planned.restart_later(run())
    assert (later in planned.recordings) is ends_well
    assert plan.failed_run(planned.recordings) is (None if ends_well else failed)


@pytest.mark.parametrize(
    "traceback",
    [
        "Traceback\nValueError: Exception encountered when calling M.call().\n\nThe layer expects 3 inputs\n\n"
        "Arguments received by M.call():\n  • inputs=tf.Tensor(shape=(2, 3), dtype=float32)",
        "Traceback\nsome.module.ValueError: The layer expects 3 inputs",
    ],
)
def test_how_a_program_failed_is_what_its_error_says(traceback):
    raised = ExceptionRaised(LINE, "ValueError", traceback, ())
    end = plan.ending(run(raised, outcome=Outcome.RAISED, status=1))
    assert end.removesuffix("ValueError: The layer expects 3 inputs") in (
        "raised with status 1: ",
        "raised with status 1: some.module.",
    )


@pytest.mark.parametrize(
    "mode, role, explained",
    [
        (RESTART, Role.RESTARTED, True),
        (RESTART, Role.WATCHED, False),
        ("fm05", Role.RESTARTED, False),
    ],
)
def test_a_restart_that_fails_is_explained_by_what_is_found_of_it(mode, role, explained):
    failed = run(REFUSES, role=role, outcome=Outcome.RAISED, status=1)
    assert plan.explains(observed(mode, failed, OTHER, "it fails", "seen"), failed) is explained


OF_AN_OPERATION = ExceptionRaised(LINE, "InvalidArgumentError", "InvalidArgumentError: [0,8]", ())
OF_KERAS = ExceptionRaised(LINE, "ValueError", "ValueError: expected axis -1", ())


@pytest.mark.parametrize(
    "events, fields, may",
    [
        ([], {"outcome": Outcome.KILLED, "status": -6}, True),
        ([], {"outcome": Outcome.KILLED, "status": -11}, False),
        ([], {}, False),
        ([OF_AN_OPERATION], {"outcome": Outcome.RAISED, "status": 1}, True),
        ([OF_KERAS], {"outcome": Outcome.RAISED, "status": 1}, False),
        ([BatchTaken(LINE, (1, 0)), OF_KERAS], {"outcome": Outcome.RAISED, "status": 1}, True),
        ([BatchTaken(LINE, (1, 0))], {}, False),
    ],
)
def test_which_failures_may_be_of_onednn(events, fields, may):
    assert plan.may_fail_by_onednn(run(strategy(), *events, **fields)) is may
    assert not plan.may_fail_by_onednn(run(strategy(1), *events, **fields))


def result_of(*recordings, diagnosis=None, locate=lambda location: location, **attributes):
    """What an examination says of recordings, each of which is a run that was made."""
    program = SimpleNamespace(name="train.py", listing=None, file=LINE[0].path)
    sandbox = SimpleNamespace(program=program, locate=locate, script="")
    planned = plan.Plan(sandbox)
    planned.recordings = list(recordings)
    planned.made = [("a run", recording) for recording in recordings]
    for name, value in attributes.items():
        setattr(planned, name, value)
    return planned.result(diagnosis or Diagnosis())


def test_what_was_not_seen_is_said():
    """By a rule that failed, by an observer, of another number of devices, and of processes; of discarded runs, nothing."""
    failed = ObserverFailed("Variables.read", "KeyError: 1")
    refused = run(REFUSES, devices=1, role=Role.COMPARED, outcome=Outcome.RAISED, status=1)
    discarded = run(ObserverFailed("Variables.read", "KeyError: 2"))
    told = result_of(
        run(failed, unseen=("a process was not observed",)),
        refused,
        discarded,
        diagnosis=Diagnosis(unseen=[NOT_REPEATED], notes=["a note"]),
        discarded={discarded},
    )
    assert (told.notes, told.unseen) == (
        ["a note"],
        [
            NOT_REPEATED,
            "on 1 device it raised with status 1: AssertionError: 2 GPUs, so it was not compared there",
            "a process was not observed",
            "the observer failed in a part of the program (Variables.read: KeyError: 1)",
        ],
    )
    assert [each.discarded for each in told.runs] == [False, False, True]
    assert result_of(run()).unseen == []


def test_a_note_tells_its_lines_as_the_reader_has_them():
    """Those of another file with its name, and those of a notebook with their cells."""
    note = Text("see ", Location(LINE), " and ", Location(stack("/program/net.py", 3)))
    told = Diagnosis(notes=[note], agreeing=[note])
    assert result_of(run(), diagnosis=told).notes == ["see line 7 and line 3 of net.py"]
    in_cell = result_of(run(), diagnosis=told, locate=lambda each: replace(each, cell=2))
    assert in_cell.notes == in_cell.agreeing == ["see cell 2, line 7 and cell 2, line 3"]


def test_a_finding_that_was_told_and_is_not_confirmed_is_withdrawn_in_words():
    told = observed("fm53", run(), LINE, "the input is not distributed", "seen")
    reported = []
    planned = plan.Plan(SimpleNamespace(locate=lambda location: location), reported.append)
    planned.tell(told)
    planned.tell(told)
    assert reported == [FindingKnown(told)]
    words = f"fm53 at {told.file}:{told.line} was told before all runs were made"
    (note,) = result_of(run(), told=planned.told).notes
    assert note.startswith(words)
    assert result_of(run(), told=planned.told, diagnosis=Diagnosis([told])).notes == []


def test_findings_on_the_same_line_of_two_cells_are_told_and_withdrawn_with_their_cells():
    reported = []
    planned = plan.Plan(SimpleNamespace(locate=lambda location: location), reported.append)
    told = observed("fm53", run(), LINE, "the input is not distributed", "seen")
    cells = [replace(told, location=replace(told.location, cell=cell)) for cell in (1, 2)]
    for each in cells:
        planned.tell(each)
    assert reported == [*map(FindingKnown, cells)]
    notes = result_of(run(), told=planned.told).notes
    assert [note.partition(" was told")[0] for note in notes] == [
        f"fm53 at {told.file}, cell {cell}, line {told.line}" for cell in (1, 2)
    ]


@pytest.mark.parametrize(
    "told, place",
    [
        (lambda each: each.seen_from("/program/main.py"), "line 7 of train.py"),
        (lambda each: replace(each, cell=2), "cell 2, line 7"),
    ],
)
def test_a_refused_change_is_told_with_its_line(told, place):
    files = SimpleNamespace(why="no view", read_only=(), folder=Path("/program"))
    with pytest.raises(UserError, match=rf"change '/etc/x' \({place}\)"):
        require_no_refusal(run(WriteRefused(LINE, "/etc/x")), files, told)
