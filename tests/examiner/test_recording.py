"""Recordings: what can be asked of them, and how they are read from a file."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from recorded import (
    LINE,
    OTHER,
    ended,
    loaded,
    omitted,
    run,
    saved,
    strategy,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.reading import EventError, NewLines, from_json
from strategy_clinic.examiner.recording import observer_failures, read_events
from strategy_clinic.examiner.runs import cluster
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    GradientComputed,
    ModelCalled,
    ObserverFailed,
    Owner,
    Saved,
    SaveKind,
    VariableRead,
    VariableSharedCentrally,
)


def test_events_of_a_kind_from_one_event_to_another():
    reads = [VariableRead(1), VariableRead(1), VariableRead(1)]
    recording = run(reads[0], loaded(), reads[1], ended(), reads[2])
    load, end = recording.events[1], recording.events[3]
    assert recording.of(VariableRead) == reads
    assert [id(each) for each in recording.of(VariableRead, after=load)] == [*map(id, reads[1:])]
    assert [id(each) for each in recording.of(VariableRead, after=load, until=end)] == [
        id(reads[1])
    ]
    assert recording.last(VariableRead) is reads[2]
    assert recording.last(Saved) is None


def test_what_is_trained():
    """By an optimizer, or by the program itself with the gradients that it has asked for."""
    gradient = GradientComputed(LINE, 0, 2, connected=(1, 2))
    assert run(updated(trains=(3,)), gradient).trained == {3}
    by_hand = written(number=1), written(number=2, writer=Owner.CHECKPOINT), written(number=4)
    assert run(gradient, *by_hand).trained == {1}


def test_which_event_comes_first():
    first, second = VariableRead(1), VariableRead(1)
    recording = run(first, second)
    assert recording.is_before(first, second)
    assert not recording.is_before(second, first)


def test_a_recording_is_equal_to_itself_only():
    one, other = run(), run()
    assert one == one and one != other
    assert len({one, other}) == 2


def test_variables():
    recording = run(variable(1, copies=2, parts=(2, 3)), variable(4), VariableSharedCentrally(4))
    assert recording.name_of(1) == "v1"
    assert recording.name_of(9) == "a variable"
    assert recording.location_of(9) == ()
    assert recording.maker_of(1) is Owner.LAYER
    assert recording.copies == {2, 3}
    assert [recording.is_distributed(number) for number in (1, 4, 2, 9)] == [
        True,
        True,
        False,
        False,
    ]


def test_replicas_and_examples():
    recording = run(strategy(2), strategy(4), BatchTaken(LINE, (3, 3)), task="worker 0")
    assert (recording.replicas, recording.processes, recording.examples) == (4, 2, 12)
    alone = run(strategy(2), BatchTaken(LINE, (16,)), task="")  # its strategy is not used
    assert (alone.replicas, alone.processes, alone.examples) == (2, 1, 16)
    assert run(ModelCalled(LINE, 8, 2, ())).examples == 16
    assert (run().replicas, run().examples) == (1, 0)
    in_step, whole = ModelCalled(LINE, 8, 2, ()), ModelCalled(LINE, 96, 1, ())
    assert run(in_step, updated(), whole).examples == run(whole, in_step, updated()).examples == 16
    assert run(updated(), in_step).examples == 16


def test_batches_of_which_a_graph_tells_no_size_are_not_seen():
    made = run(strategy(), DatasetBatched(LINE, 16))
    assert (made.examples, made.examples_seen) == (16, 0)
    assert run(strategy(), DatasetBatched(LINE, 16), DatasetFromFunction(LINE)).examples == 32


def test_batches_for_an_evaluation_are_none_of_a_step():
    of_step, later = BatchTaken(LINE, (8, 8)), BatchTaken(OTHER, (2, 2))
    assert run(of_step, updated(), later).examples == 16
    made, batched = DatasetFromFunction(LINE), DatasetBatched((*OTHER, *LINE), 8)
    assert run(strategy(), batched, made, updated(), later).examples == 16
    assert run(strategy(), updated(), later).examples == 4  # nothing else is known


def test_batches_whose_first_dimension_is_time():
    made, batched = DatasetFromFunction(LINE), DatasetBatched((*OTHER, *LINE), 8)
    of_time, of_step = BatchTaken(LINE, (6, 6)), BatchTaken(LINE, (8, 8))
    assert run(strategy(), batched, made, of_time, updated()).examples == 16
    other = DatasetBatched((*OTHER, *LINE), 2)  # of a function for an evaluation
    assert run(strategy(), batched, other, made, of_step, updated()).examples == 16


def test_a_start_knows_what_was_saved_before_but_not_its_variables():
    first = run(saved(left=[omitted()], optimizers=(updated().optimizer,)), VariableRead(1))
    recording = run(saved(path="ck-2"), loaded(), before=first)
    (save,) = recording.saves_before_start
    assert (save.path, save.variables, save.omitted) == ("ck-1", (), ())
    assert save.optimizers == (updated().optimizer,)
    assert recording.saves("ck-1", until=recording.events[1]) == [save]
    assert run(saved()).saves_before_start == []


def test_saves_before_an_event():
    recording = run(saved(), loaded(), saved(location=OTHER), saved(kind=SaveKind.MODEL))
    assert len(recording.saves("ck-1", until=recording.events[1])) == 1
    assert len(recording.checkpoints) == 2


def test_a_line_that_a_crash_has_cut_off(tmp_path):
    path = tmp_path / "events.jsonl"
    whole = VariableRead(1).to_json() + "\n"
    path.write_text(whole + whole[:20])
    assert read_events(path) == (VariableRead(1),)
    assert read_events(tmp_path / "none") == ()


def test_each_line_of_a_file_that_grows_is_read_once(tmp_path):
    path = tmp_path / "events.jsonl"
    lines = NewLines(path)
    assert [*lines] == []
    for text, expected in (("one\ntw", ["one\n"]), ("", []), ("o\n", ["two\n"]), ("", [])):
        with path.open("a") as file:
            file.write(text)
        assert [*lines] == expected


def test_the_events_of_a_task_are_read_once(tmp_path, monkeypatch):
    """Its file is looked at several times a second, until it has reported its end."""
    read = []
    monkeypatch.setattr(cluster, "from_json", lambda line: read.append(line) or from_json(line))
    running = SimpleNamespace(
        events=tmp_path / "events", process=SimpleNamespace(poll=lambda: None)
    )
    sandbox = SimpleNamespace(start=lambda *given: running)
    task = cluster.Task(sandbox, {"worker": ["here:1"]}, "worker", 0, ())
    assert task.status is None
    text = VariableRead(1).to_json() + "\n" + replace(ended({}), status=3).to_json() + "\n"
    running.events.write_text(text)
    assert [task.status for _ in range(3)] == [3, 3, 3]
    assert len(read) == 1


def test_a_line_that_is_no_event(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"schema": 1, "event": "Unheard"}\n')
    with pytest.raises(EventError, match="no event 'Unheard'"):
        read_events(path)


def test_failures_of_the_observer_are_told_once():
    failed = ObserverFailed("was_read", "KeyError: 1")
    assert observer_failures([run(failed), run(failed)]) == ("was_read: KeyError: 1",)
