"""Which repairs are proven. Real runs at the end; the others have examinations that are given."""

import json
import os
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import pytest
from recorded import LINE, loaded, run, updated, variable
from strategy_clinic import cli
from strategy_clinic.examiner.cells import Cell, listing_of
from strategy_clinic.examiner.edits import Edit, Repair, inside
from strategy_clinic.examiner.findings import (
    Evidence,
    Examination,
    Finding,
    Location,
    RunMade,
    Text,
)
from strategy_clinic.examiner.frontends import command
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.repair import RepairOfMode, places_told, repairs
from strategy_clinic.examiner.report import machine_readable
from strategy_clinic.examiner.report import text as text_report
from strategy_clinic.examiner.runs import mend, plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.progress import FindingKnown, RunStarted
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import (
    Ended,
    Frame,
    Outcome,
    Owner,
    Sample,
    VariableValue,
)
from strategy_clinic.processes import python_process

TEXT = "import tensorflow as tf\n\ng = tape.gradient(loss, weights)\n"


def finding(mode="fm13", path="/program/train.py", line=3):
    where = Location((Frame(str(path), line, "main"),))
    return Finding(mode, where, Evidence.OBSERVED, Text("x"), Text("observed"))


def both(*values, maker=Owner.USER, **fields):
    """Recordings on 2 devices and on 1, at whose end a variable has these values."""
    return [
        run(
            variable(1, maker=maker, **fields),
            Ended(Outcome.FINISHED, 0, 0.0, (VariableValue(1, Sample(value, (value,))),), (), ()),
            devices=devices,
            role=role,
        )
        for devices, role, value in zip((2, 1), (Role.WATCHED, Role.COMPARED), values)
    ]


def test_runs_of_a_repaired_copy_are_told_and_what_they_show_is_not():
    said = []
    report = mend.of_repair(SimpleNamespace(mode="fm13"), said.append)
    report(RunStarted("on 2 devices"))
    report(FindingKnown(finding()))
    assert said == [RunStarted("with fm13 repaired, on 2 devices")]


FOUND = finding()
BEFORE = Examination("train.py", both(1.0, 1.0), [FOUND], notes=["known"])


def after(*findings, recordings=None, **fields):
    return Examination("train.py", recordings or both(1.0, 1.0), list(findings), **fields)


def test_a_repair_is_proven_by_the_same_runs_without_the_finding():
    assert mend.objection(BEFORE, FOUND, after()) == ""
    assert mend.objection(BEFORE, FOUND, after(notes=["known"])) == ""
    assert mend.objection(BEFORE, FOUND, after(notes=[plan.NOT_DISTRIBUTED])) == ""


@pytest.mark.parametrize(
    "examination, reason",
    [
        (after(FOUND), "the finding is still there with it"),
        (after(finding(line=7)), "the finding is still there with it"),
        (after(finding("fm37")), "fm37 is found with it"),
        (after(failure="KeyError: x"), "the program fails with it (KeyError: x)"),
        (
            after(recordings=[*both(1.0), run(outcome=Outcome.RAISED, role=Role.COMPARED)]),
            "the program fails with it (on another number of devices)",
        ),
        (after(notes=["it does not repeat itself"]), "it is not sure (it does not repeat itself)"),
        (after(unseen=["a process was not seen"]), "it is not sure (a process was not seen)"),
        (after(stopped=True), "it was stopped"),
        (
            after(recordings=both(6.0, 3.0)),
            "v1 differs with it between numbers of devices",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_repair_is_not_proven(examination, reason):
    assert mend.objection(BEFORE, FOUND, examination) == reason


def test_runs_may_differ_by_rounding_and_by_what_correct_programs_have():
    note = "it differs; so it does if only the last digits of the weights differ"
    apart = after(notes=[note], recordings=both(6.0, 3.0))
    assert mend.objection(BEFORE, FOUND, replace(apart, agreeing=[note])) == ""
    assert mend.objection(BEFORE, FOUND, apart) == f"it is not sure ({note})"
    both_noted = replace(apart, agreeing=[note], notes=[note, "the rest may be rounding"])
    assert mend.objection(BEFORE, FOUND, both_noted) != ""


def test_another_finding_of_the_mode_may_stay():
    two = replace(BEFORE, findings=[FOUND, finding(line=9)])
    assert mend.objection(two, FOUND, after(finding(line=9))) == ""
    assert mend.objection(two, FOUND, after(FOUND, finding(line=9))) != ""


def test_what_differs_through_another_fault_may_stay():
    two = replace(BEFORE, findings=[FOUND, finding("fm37")], recordings=both(6.0, 3.0))
    assert mend.objection(two, FOUND, after(finding("fm37"), recordings=both(6.0, 3.0))) == ""
    one = replace(two, recordings=both(3.0, 3.0))
    assert mend.objection(one, FOUND, after(finding("fm37"), recordings=both(6.0, 3.0))) != ""


def test_what_differs_without_a_finding_may_stay_if_the_mode_is_about_a_file():
    of_file, of_devices = finding("fm72"), finding("fm37")
    for one, allowed in ((of_file, True), (of_devices, False)):
        before = replace(BEFORE, findings=[one], recordings=both(6.0, 3.0))
        assert (mend.objection(before, one, after(recordings=both(6.0, 3.0))) == "") is allowed
    alike = replace(BEFORE, findings=[of_file])
    assert mend.objection(alike, of_file, after(recordings=both(6.0, 3.0))) != ""


def test_what_an_optimizer_has_may_differ():
    assert mend.objection(BEFORE, FOUND, after(recordings=both(6.0, 3.0, maker=Owner.METRIC))) == ""


def test_what_each_replica_has_a_part_of_may_differ():
    parts = both(6.0, 3.0, synchronization="ON_READ")
    assert mend.objection(BEFORE, FOUND, after(recordings=parts)) == ""
    whole = both(6.0, 3.0, synchronization="ON_WRITE")
    assert mend.objection(BEFORE, FOUND, after(recordings=whole)) != ""


LATIN = "# -*- coding: latin-1 -*-\nimport tensorflow as tf\ng = tape.gradient(é, w)\n"


@pytest.mark.parametrize("raw", [LATIN.encode("latin-1"), TEXT.encode("utf-8-sig")])
def test_a_file_in_another_encoding_keeps_it(tmp_path, raw):
    path = tmp_path / "train.py"
    path.write_bytes(raw)
    program = ProgramSpec(("train.py",), tmp_path)
    _, edited = next(mend.candidates(program, finding(path=path)))
    with Sandbox(edited) as sandbox:
        found = sandbox.files.in_initial("train.py").read_bytes()
    assert found == raw.replace(b")\n", b", unconnected_gradients=tf.UnconnectedGradients.ZERO)\n")


# Attempts

RUN = RunMade("on 2 devices (watched)", Role.WATCHED, 2, Outcome.FINISHED, 1.0)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "train.py").write_text(TEXT)
    return ProgramSpec(("train.py",), tmp_path)


@pytest.fixture
def examined(monkeypatch):
    """Examinations that find fm13 as long as the text has no ZERO."""
    texts = []

    def examine(edited, *_):
        ((name, text),) = edited.edited
        texts.append(text)
        path = edited.folder / name
        assert path.read_text() == TEXT
        return after(*([] if "ZERO" in text else [finding(path=path)]), runs=[RUN])

    monkeypatch.setattr(mend, "examine", examine)
    return texts


def examination_of(program, mode="fm13"):
    here = finding(mode, program.folder / "train.py")
    return Examination("train.py", both(1.0, 1.0), [here])


def test_a_proven_repair_is_offered_and_the_program_stays(program, examined):
    examination = examination_of(program)
    (attempt,) = mend.mend(program, examination, (1, 2))
    assert examination.repairs == [attempt.proven]
    assert attempt.proven.after == examined[0] != TEXT
    assert (program.folder / "train.py").read_text() == TEXT
    assert examination.notes == []
    assert [each.words for each in examination.runs] == [
        "with fm13 repaired, on 2 devices (watched)"
    ]


def test_a_repair_that_does_not_remove_the_finding_is_not_offered(program, examined, monkeypatch):
    @repairs("fm13")
    def useless(source, line):
        yield [source.insert_before(source.statement(line), "pass")]

    assert isinstance(useless, RepairOfMode)
    monkeypatch.setattr("strategy_clinic.examiner.repair.repairers", lambda: {"fm13": useless})
    examination = examination_of(program)
    (attempt,) = mend.mend(program, examination, (1, 2))
    assert "pass" in examined[0]
    assert (examination.repairs, attempt.proven) == ([], None)
    assert examination.notes == [
        "fm13 at line 3: a repair was tried, and is not offered: the finding is still there with it"
    ]


def test_the_next_repair_is_tried_if_one_is_not_proven(program, examined, monkeypatch):
    @repairs("fm13")
    def two(source, line):
        yield [source.insert_before(source.statement(line), "pass")]
        yield [source.insert_before(source.statement(line), "ZERO = 0")]

    monkeypatch.setattr("strategy_clinic.examiner.repair.repairers", lambda: {"fm13": two})
    examination = examination_of(program)
    (attempt,) = mend.mend(program, examination, (1, 2))
    assert len(examined) == 2
    assert "ZERO" in attempt.proven.after


@pytest.mark.parametrize(
    "mode, text, note",
    [
        ("fm34", TEXT, "fm34 at line 3: no repair can be written for this mode"),
        ("fm13", TEXT.replace("tape.", "my_"), "no repair can be written for this form"),
    ],
)
def test_nothing_is_run_where_no_repair_can_be_written(program, examined, mode, text, note):
    (program.folder / "train.py").write_text(text)
    examination = examination_of(program, mode)
    assert mend.mend(program, examination, (1, 2))[0].proven is None
    assert examined == []
    assert note in examination.notes[0]


def test_a_note_says_of_which_findings_repairs_can_be_tried(program):
    examination = examination_of(program)
    examination.findings.append(finding("fm34", program.folder / "train.py"))
    (note,) = mend.repairs_to_try(program, examination)
    assert note == "--mend tries repairs of fm13 in copies, and shows those that are proven"
    assert mend.repairs_to_try(program, examination_of(program, "fm34")) == []


def test_files_outside_of_the_folder_and_of_other_notebooks_are_left_alone(
    program, examined, tmp_path_factory
):
    other = tmp_path_factory.mktemp("other") / "train.py"
    other.write_text(TEXT)
    assert list(mend.candidates(program, finding(path=other))) == []
    cell = replace(finding(), location=Location(LINE, cell=3))
    assert list(mend.candidates(program, cell)) == []
    (program.folder / "train.py").write_bytes(b"# \xff\n" + TEXT.encode())
    assert list(mend.candidates(program, finding(path=program.folder / "train.py"))) == []


def test_the_file_that_calls_the_line_of_a_finding_is_repaired_after_its_own(program):
    helper, train = program.folder / "helper.py", program.folder / "train.py"
    helper.write_text("def own(gradients):\n    return gradients\n")
    outside = Frame("/elsewhere/other.py", 3, "main")
    frames = (Frame(str(helper), 2, "own"), outside, Frame(str(train), 3, "main"))
    here = replace(finding(), location=Location(frames))
    (repair, edited), *_ = mend.candidates(program, here)
    assert (repair.file, repair.line, repair.path) == (str(helper), 2, str(train))
    assert edited.edited == (("train.py", repair.after),)
    assert f"+++ b/{text_report.shown_path(str(train))}" in text_report.repair_in_words(repair)
    examination = Examination("train.py", findings=[here], repairs=[repair])
    assert machine_readable.repairs_of(examination, here) == [repair]
    (fix,) = machine_readable.sarif_fixes([repair], program.folder)["fixes"]
    assert "train.py" in str(fix["artifactChanges"][0]["artifactLocation"])
    helper.write_text("import tensorflow as tf\ng = tape.gradient(loss, weights)\n")
    assert [repair.path for repair, _ in mend.candidates(program, here)] == [
        *[str(helper)] * 2,
        *[str(train)] * 2,
    ]


CELLS = [
    Cell(1, "%load_ext x\nimport tensorflow as tf"),
    Cell(3, "before = 1\ng = tape.gradient(loss, weights)"),
]


def test_a_repair_of_a_cell_is_a_diff_of_the_cell(tmp_path):
    """The lines of its edits are those of the cell; the program that is run has all cells."""
    listing = listing_of("train.ipynb", CELLS, str(tmp_path / "train.ipynb"))
    program = ProgramSpec((), tmp_path).with_listing(listing)
    frames = (Frame(listing.file, 2, "<module>"),)
    here = replace(finding(), location=Location(frames, cell=3))
    repair, edited = next(mend.candidates(program, here))
    assert (repair.cell, repair.line, repair.before) == (3, 2, CELLS[1].text + "\n")
    assert edited.listing.text == listing.text.replace(
        "weights)", "weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)"
    )
    assert text_report.repair_in_words(repair).splitlines()[1:3] == [
        f"--- a/{text_report.shown_path(listing.file)} cell 3",
        f"+++ b/{text_report.shown_path(listing.file)} cell 3",
    ]
    assert "train.ipynb, cell 3, line 2, proven" in text_report.repair_heading(repair)
    examination = Examination("train.ipynb", findings=[here], repairs=[repair])
    assert machine_readable.repairs_of(examination, here) == [repair]
    assert machine_readable.sarif_fixes([repair], tmp_path) == {}


def test_a_repair_of_several_cells_is_not_offered():
    before = "import tensorflow as tf\na = 1\nb = 2\n"
    edits = tuple(Edit((line, 1), (line, 1), "x") for line in (2, 3))
    whole = Repair("fm05", "n.ipynb", 2, before, edits)
    assert inside(whole, 2, range(2, 3), ["a = 1"]) is None
    assert inside(whole, 2, range(2, 4), ["a = 1", "b = 2"]).after == "xa = 1\nxb = 2\n"


@pytest.mark.parametrize(
    "line, column, expected",
    [
        (3, 1, "!pip list\nxa = 1\n"),
        (2, 1, "x!pip list\na = 1\n"),
        (3, 2, "!pip list\nax = 1\n"),
        (2, 5, None),
    ],
    ids=["above the other line", "above it", "in the other line", "in it"],
)
def test_a_repair_shows_the_magics_of_a_cell(line, column, expected):
    """Python is run in their place, in which no column is that of the cell."""
    before = "import tensorflow as tf\nget_ipython().system('pip list')\na = 1\n"
    whole = Repair("fm05", "n.ipynb", 3, before, (Edit((line, column), (line, column), "x"),))
    repair = inside(whole, 1, range(2, 4), ["!pip list", "a = 1"])
    assert (repair and repair.after) == expected


def test_lines_that_only_the_program_has_are_not_repaired():
    before = "began = begin()\na = 1\nend()\n"
    for line, offered in ((2, True), (3, False)):
        whole = Repair("fm05", "n.ipynb", 2, before, (Edit((line, 1), (line, 2), "x"),))
        assert bool(inside(whole, 1, range(1, 4), ["%%capture out", "a = 1"])) is offered


def test_the_lines_of_a_cell_are_shown_as_they_are():
    cells = [Cell(1, "import os\n!ls\nos.sep"), Cell(2, "%%capture out\nprint(1)")]
    listing = listing_of("n.ipynb", cells)
    assert listing.shown_in(1) == ["import os", "!ls", "os.sep"]
    assert listing.shown_in(2) == ["%%capture out", "print(1)"]
    assert len(listing.lines_of_cell(2)) == 3


def test_a_repair_keeps_how_a_file_ends_its_lines(tmp_path):
    import subprocess

    path = tmp_path / "train.py"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    program = ProgramSpec(("train.py",), tmp_path)
    repair, edited = next(mend.candidates(program, finding(path=path)))
    with Sandbox(edited) as sandbox:
        copied = sandbox.files.in_initial("train.py").read_bytes()
    assert copied == repair.after.replace("\n", "\r\n").encode()
    diff = repair.diff("train.py").encode()
    subprocess.run(["git", "apply", "-p1", "-"], cwd=tmp_path, input=diff, check=True)
    assert path.read_bytes() == copied
    (fix,) = machine_readable.sarif_fixes([repair], tmp_path)["fixes"]
    assert "\n" not in fix["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"]


def test_a_repair_may_not_change_what_one_device_trains():
    """Runs agree with it, since both compute something else: a repair of fm37 has one device train as before."""
    here = finding("fm37")
    before = Examination("train.py", both(6.0, 3.0), [here])
    assert mend.objection(before, here, after(recordings=both(3.0, 3.0))) == ""
    changed = after(recordings=both(6.0, 6.0))
    assert mend.objection(before, here, changed) == "v1 is another with it on one device"
    assert mend.objection(replace(before, findings=[FOUND]), FOUND, changed) == ""


def test_variables_that_only_the_repaired_run_keeps_are_not_compared_with_others():
    here = finding("fm37")
    before = Examination("train.py", both(3.0, 3.0), [here])
    kept = VariableValue(2, Sample(9.0, (9.0,)))
    more = []
    for each in both(3.0, 3.0):
        *events, end = each.events
        events += [
            variable(2, name="v1", maker=Owner.USER),
            replace(end, values=(kept, *end.values)),
        ]
        more.append(replace(each, events=tuple(events)))
    assert mend.objection(before, here, after(recordings=more)) == ""
    trained = [replace(each, events=(*each.events, updated(trains=(1,)))) for each in more]
    changed = [replace(each, events=(*each.events, updated(trains=(2,)))) for each in more]
    known = replace(before, recordings=[*before.recordings])
    known.recordings[1:] = [
        replace(each, events=(*each.events, updated(trains=(1,)))) for each in known.recordings[1:]
    ]
    assert mend.objection(known, here, after(recordings=trained)) == ""
    reason = "v1 is another with it on one device"
    assert mend.objection(known, here, after(recordings=changed)) == reason


def test_a_repair_may_change_what_is_loaded_with_it_alone():
    here = finding("fm05")
    before = Examination("train.py", both(3.0, 3.0), [here])
    load = loaded(variables=(1,))
    other = [replace(each, events=(*each.events, load)) for each in both(6.0, 6.0)]
    assert mend.objection(before, here, after(recordings=other)) == ""
    again = [replace(each, events=(*each.events, load)) for each in before.recordings]
    known = replace(before, recordings=again)
    assert (
        mend.objection(known, here, after(recordings=other))
        == "v1 is another with it on one device"
    )


def test_the_places_that_a_finding_tells_are_those_of_its_file():
    made = Location((Frame("/program/net.py", 3, "f"), Frame("/program/train.py", 9, "main")))
    other = Location((Frame("/program/net.py", 4, "f"),))
    told = replace(finding(), message=Text("made at ", made, " and ", other))
    assert [each.line for each in places_told(told, told.file)] == [9]


# Real runs

TRAINING = """
    import numpy as np
    import tensorflow as tf

    SIZE = 8


    def main():
        mirrored = tf.distribute.MirroredStrategy()
        seen = tf.Variable(0.0)
        with mirrored.scope():
            net = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
            descent = tf.keras.optimizers.SGD(0.1)
            descent.build(net.trainable_variables)

        def criterion(truth, answer):
            return tf.reduce_mean(tf.square(truth - answer))

        def rows(examples):
            return tf.cast(tf.shape(examples)[0], tf.float32)

        def one_step(examples):
            seen.assign_add(rows(examples))
            with tf.GradientTape() as recorder:
                value = criterion(tf.reduce_sum(examples, axis=1), net(examples)[:, 0])
            slopes = recorder.gradient(value, net.trainable_variables)
            descent.apply_gradients(zip(slopes, net.trainable_variables))

        @tf.function
        def everywhere(examples):
            mirrored.run(one_step, args=(examples,))

        numbers = np.random.default_rng(0).normal(size=(4 * SIZE, 3)).astype("float32")
        for examples in mirrored.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices(numbers).batch(SIZE)
        ):
            everywhere(examples)
        print(seen.numpy(), net.get_weights())


    if __name__ == "__main__":
        main()
"""


@pytest.mark.replayed
def test_a_program_with_two_faults_gets_two_repairs(tmp_path, monkeypatch, capfd):
    """Of a counter over replicas, only the sum agrees on 1 and 2 devices, which is the second that is tried."""
    server = python_process.fork_server()
    monkeypatch.setattr(
        command,
        "ProgramSpec",
        lambda *given, **named: ProgramSpec(*given, **named, fork_server=server),
    )
    monkeypatch.chdir(tmp_path)
    text = textwrap.dedent(TRAINING)
    (tmp_path / "train.py").write_text(text)
    options = ["examine", "--mend", "--json", "-", "--sarif", "found.sarif", "train.py"]
    assert cli.main(options) == 1
    told = json.loads(capfd.readouterr().out)
    repaired = {each["mode"]: each.get("repair", {}).get("diff", "") for each in told["findings"]}
    assert repaired.keys() == {"fm23", "fm37"}
    assert (
        "+        seen = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)"
        in repaired["fm23"]
    )
    averaged = "tf.nn.compute_average_loss(tf.square(truth - answer), global_batch_size=SIZE)"
    assert f"+        return {averaged}" in repaired["fm37"]
    sarif = json.loads((tmp_path / "found.sarif").read_text())
    assert all(len(each["fixes"]) == 1 for each in sarif["runs"][0]["results"])
    assert (tmp_path / "train.py").read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["found.sarif", "train.py"]
