"""Counts of speed and memory: what a person reads, and what is written for other programs. No TensorFlow."""

from dataclasses import replace

import pytest
from recorded import LINE, run, strategy
from strategy_clinic.examiner.cells import Cell, listing_of
from strategy_clinic.examiner.counts import counts_of
from strategy_clinic.examiner.findings import Examination, Location
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.report import html, machine_readable, text
from strategy_clinic.observer.events import (
    Activations,
    BatchTaken,
    DeviceBytes,
    HostReads,
    StepsCounted,
)

FIRST = DeviceBytes("CPU:0", 1_200_000, 2_400_000, 0)
COUNTED = StepsCounted(
    updates=20, eager_runs=0, graph_calls=20, traces=1, reads=(HostReads(LINE, 19),), read=23,
    input_share=0.404, held=(FIRST, replace(FIRST, device="CPU:1", slots=2_399_996)),
    activations=Activations(1_000, 50_000, 0),
)  # fmt: skip


def same(location):
    return location


def counted(locate=same, **changes):
    batch = BatchTaken(LINE, (8, 8))
    recordings = [
        run(strategy(), batch, replace(COUNTED, **changes)),
        run(strategy(1), batch, COUNTED, devices=1, role=Role.COMPARED),
        run(strategy()),
    ]
    return Examination("train.py", recordings, counts=counts_of(recordings, locate))


def lines(**changes):
    return dict(counted(**changes).counts[0].lines)


def words(name, **changes):
    return str(lines(**changes).get(name, ""))


def test_a_person_reads_those_of_the_first_run_if_they_ask():
    said = text.in_words(counted(), counts=True)
    assert said.split("\n\n")[0].splitlines() == [
        "counts on 2 devices",
        "    examples  16 in a step, 8 on each of 2 replicas",
        "    memory    CPU:0: 1.2 MB of weights, 2.4 MB of the optimizer's slots; as much on CPU:1",
        "    kept      401.0 kB of activations on each of 2 replicas until the gradients are computed",
        "    steps     20 updates in 20 graph calls, 1 of them traced",
        "    reads     23 values read on the host between steps, 1.2 a step; 19 of them on line 7",
        "    input     40% of the time between steps waits for `next`",
    ]
    assert "counts" not in text.in_words(counted())


def test_devices_that_hold_different_things_are_listed():
    held = (FIRST, DeviceBytes("CPU:1", 600, 0, 2_000_000_000))
    assert words("memory", held=held) == (
        "CPU:0: 1.2 MB of weights, 2.4 MB of the optimizer's slots; "
        "CPU:1: 600 bytes of weights, 2.0 GB of metrics and the like"
    )


@pytest.mark.parametrize(
    "changes, name, said",
    [
        ({"eager_runs": 20, "graph_calls": 0}, "steps", ""),
        ({"eager_runs": 20, "graph_calls": 0}, "eager", "20 steps executed by Python, not as a graph"),
        ({"graph_calls": 5, "traces": 2}, "steps", "20 updates in 5 graph calls, 2 of them traced"),
        ({"updates": 0}, "steps", "20 graph calls, 1 of them traced"),
        ({"read": 0, "reads": ()}, "reads", "no value was read on the host between steps"),
        ({"input_share": None}, "input", ""),
        ({"held": ()}, "memory", ""),
        ({"eager_runs": 0, "graph_calls": 0}, "kept", ""),
        ({"activations": None}, "kept", "activations are not counted: no gradients were computed in a graph"),
    ],
)  # fmt: skip
def test_what_was_not_counted_is_not_said(changes, name, said):
    assert words(name, **changes) == said


def test_tensors_of_unknown_size_are_said_not_to_be_counted():
    said = words("kept", activations=Activations(2_000, 0, 3))
    assert said.startswith("2.0 kB of activations on each of 2 replicas until")
    assert said.endswith("; 3 tensors of unknown size not counted")


def test_without_the_size_of_a_batch_the_bytes_of_an_example_are_said():
    recordings = [run(strategy(), COUNTED)]
    (counts,) = counts_of(recordings, same)
    assert str(dict(counts.lines)["kept"]).startswith(
        "1.0 kB of activations and 50.0 kB for each example"
    )
    assert counts.values["activations"]["bytes"] is None


def test_other_programs_get_the_counts_of_all_runs(tmp_path):
    values = machine_readable.as_json(counted())["counts"]
    assert [each["devices"] for each in values] == [2, 1]
    assert values[0]["memory"][1] == {
        "device": "CPU:1", "weights": 1_200_000, "slots": 2_399_996, "other": 0,
    }  # fmt: skip
    assert [each["activations"]["bytes"] for each in values] == [401_000, 801_000]
    assert values[0]["host_reads_at"] == [{"file": LINE[0].path, "line": 7, "times": 19}]
    sarif = machine_readable.as_sarif(counted(), tmp_path)
    assert sarif["runs"][0]["properties"] == {"counts": values}


def test_a_line_of_a_notebook_is_one_of_its_cell():
    in_cell = counted(lambda location: Location(location.frames, cell=3))
    assert str(dict(in_cell.counts[0].lines)["reads"]).endswith("on cell 3, line 7")


def test_the_counts_come_after_the_findings_and_before_the_notes():
    told = counted()
    told.notes.append("last")
    said = text.in_words(told, counts=True)
    assert said.index("counts on") < said.index("nothing found") < said.index("note: last")


def test_a_card_has_the_counts_if_they_are_asked_for():
    listing = listing_of("train.py", [Cell(0, "x")])
    shown = html.as_display(counted(), listing, counts=True)
    assert "<summary>counts on 2 devices</summary>" in shown["text/html"]
    assert "counts on 2 devices" in shown["text/plain"]
    assert (
        "counts" not in "".join(html.as_display(counted(), listing).values()).split("</style>")[1]
    )
