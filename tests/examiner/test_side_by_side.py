"""Runs that go on at the same time: real processes whose interpreter writes the events that a program asks for. No TensorFlow."""

import os
import sys
import textwrap

import pytest
from kernels import until
from strategy_clinic.base import files
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs import plan, side_by_side
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.observer.events import Outcome

pytestmark = pytest.mark.slow

# Runs a program as the observer does, with `devices`, `outside` (a folder), `wait_for` (a file in it), and `end(value)`.
INTERPRETER = """\
#!{python}
import os, sys, time
sys.path.insert(0, {package!r})
from pathlib import Path
from strategy_clinic.observer.events import *

if "-c" in sys.argv:
    sys.exit(0)
options = dict(zip(sys.argv[2:], sys.argv[3:]))
devices, outside = int(options["--devices"]), Path({outside!r})

def emit(event):
    with open(options["--events"], "a") as file:
        file.write(event.to_json() + "\\n")

def wait_for(name, seconds=10):
    latest = time.monotonic() + seconds
    while not (outside / name).exists() and time.monotonic() < latest:
        time.sleep(0.01)
    return (outside / name).exists()

def end(value=0.0, outcome=Outcome.FINISHED):
    values = (VariableValue(1, Sample(value, (value,))),)
    emit(StepEnded(1, values, (), (), ()))
    emit(Ended(outcome, int(outcome is Outcome.RAISED), 0.0, values, (), ()))
    sys.exit(int(outcome is Outcome.RAISED))

program = sys.argv[-1]
line = (Frame(os.path.abspath(program), 1, "main"),)
emit(Started(devices))
emit(StrategyMade(line, "Mirrored", devices))
emit(VariableMade(line, 1, "weight", (1,), "float32", Owner.LAYER, 0, (), "AUTO"))
exec(open(program).read())
end()
"""


@pytest.fixture
def examined(tmp_path, monkeypatch, copied):
    """Examines a program on 1 and 2 devices, side by side or one after the other; gives all of it, and how runs went."""
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    monkeypatch.setattr(side_by_side, "free_memory", lambda: 1 << 40)
    python, folder = tmp_path / "python", tmp_path / "program"
    package, outside = str(files.PACKAGE.parent), str(tmp_path)
    python.write_text(INTERPRETER.format(python=sys.executable, package=package, outside=outside))
    python.chmod(0o755)
    folder.mkdir()

    def examine(text):
        (folder / "train.py").write_text(textwrap.dedent(text))
        spec = ProgramSpec(("train.py",), folder, python=str(python), limit=20)
        steps = []
        examination = plan.examine(spec, report=steps.append)
        assert os.listdir(folder) == ["train.py"]
        return examination, [each.outcome for each in steps if hasattr(each, "outcome")]

    return examine


def ended(examination):
    return [(each.role, each.devices, each.outcome) for each in examination.recordings]


def made(examination):
    return [(each.words, each.outcome, each.discarded) for each in examination.runs]


BOTH = [(Role.WATCHED, 2, Outcome.FINISHED), (Role.COMPARED, 1, Outcome.FINISHED)]


def test_two_numbers_of_devices_run_at_the_same_time(examined):
    examination, _ = examined(
        """
        (outside / f"here-{devices}").touch()
        assert wait_for(f"here-{3 - devices}")
        """
    )
    assert ended(examination) == BOTH
    assert (examination.findings, examination.notes, examination.failure) == ([], [], "")


@pytest.mark.parametrize("name, value", [("processors", 1), ("free_memory", 4 << 30)])
def test_one_runs_after_the_other_where_there_is_no_room(examined, monkeypatch, name, value):
    monkeypatch.setattr(side_by_side, name, lambda: value)
    examination, _ = examined(
        """
        (outside / "here").open("x")
        time.sleep(0.3)
        (outside / "here").unlink()
        """
    )
    assert ended(examination) == BOTH


def test_each_has_a_folder_of_its_own_and_events_have_the_paths_of_the_reader(examined):
    examination, _ = examined(
        """
        open("lock", "x").close()
        (outside / f"here-{devices}").touch()
        assert wait_for(f"here-{3 - devices}")
        """
    )
    assert ended(examination) == BOTH
    paths = {each.location_of(1)[0].path for each in examination.recordings}
    assert {os.path.basename(os.path.dirname(path)) for path in paths} == {"program"}
    assert all("clinic-" not in path for path in paths)


# What two runs may do to each other

ONE_AT_A_TIME = """
    if devices == {first}:
        (outside / "lock").open("x")
        wait_for("seen", 5)
        (outside / "lock").unlink()
    elif wait_for("lock", 1 if (outside / "seen").exists() else 5):
        (outside / "seen").touch()
        end(outcome=Outcome.RAISED)
"""


def test_a_run_that_fails_beside_another_is_made_again_alone(examined):
    examination, outcomes = examined(ONE_AT_A_TIME.format(first=2))
    assert ended(examination) == BOTH
    assert (outcomes, examination.notes) == ([Outcome.FINISHED] * 2, [])


def test_a_first_run_that_fails_beside_another_is_made_again_alone(examined):
    examination, outcomes = examined(ONE_AT_A_TIME.format(first=1))
    assert ended(examination) == BOTH
    assert outcomes == [Outcome.RAISED, Outcome.FINISHED, Outcome.FINISHED]
    assert examination.failure == ""


def test_values_that_differ_only_beside_another_run_are_not_compared(examined):
    examination, _ = examined(
        """
        once = outside / f"once-{devices}"
        first = not once.exists()
        once.touch()
        wait_for(f"once-{3 - devices}", 2)
        end(float(first and devices == 1))
        """
    )
    assert ended(examination) == BOTH
    assert examination.findings == []
    assert examination.unseen == [plan.NOT_REPEATED]


def test_values_that_differ_each_time_by_the_number_of_devices_are(examined):
    examination, outcomes = examined("end(float(devices))")
    assert ended(examination) == BOTH
    assert plan.NOT_REPEATED not in examination.unseen
    assert len(outcomes) == 5  # both are repeated, and one run has other last digits
    assert len(examination.runs) == 5 and not any(each.discarded for each in examination.runs)


def test_a_run_that_nobody_waits_for_is_ended(examined, tmp_path):
    examination, outcomes = examined(
        """
        if devices == 1:
            (outside / "pid").write_text(str(os.getpid()))
            time.sleep(60)
        wait_for("pid")
        emit(ExceptionRaised(line, "ValueError", "ValueError: x", ()))
        end(outcome=Outcome.RAISED)
        """
    )
    pid = int((tmp_path / "pid").read_text())
    assert until(lambda: not os.path.exists(f"/proc/{pid}"), 5)
    assert ended(examination) == [(Role.WATCHED, 2, Outcome.RAISED)]
    assert outcomes == [Outcome.RAISED] * 2  # beside the other run, and alone
    watched = "on 2 devices (watched)", Outcome.RAISED
    compared = "on 1 device (compared)", Outcome.KILLED
    assert made(examination) == [(*watched, True), (*compared, True), (*watched, False)]


def test_a_run_beside_ends_when_memory_runs_out_and_is_made_alone(examined, monkeypatch, tmp_path):
    began = tmp_path / "began-1"
    monkeypatch.setattr(side_by_side, "free_memory", lambda: 0 if began.exists() else 1 << 40)
    monkeypatch.setattr(side_by_side, "BETWEEN_LOOKS", 0.01)
    examination, outcomes = examined(
        """
        if devices == 1:
            (outside / "pid").write_text(str(os.getpid()))
        with open(outside / f"began-{devices}", "a") as file:
            file.write("x")
        if devices == 1 and (outside / "began-1").read_text() == "x":
            time.sleep(60)
        if devices == 2:  # memory is looked at while this run goes on
            wait_for("began-1")
            while os.path.exists("/proc/" + (outside / "pid").read_text()):
                time.sleep(0.01)
        """
    )
    assert ended(examination) == BOTH
    assert outcomes == [Outcome.FINISHED] * 2


# What the machine allows


@pytest.mark.parametrize(
    "processors, gigabytes, most", [(1, 64, 0), (2, 64, 1), (8, 64, 7), (8, 7, 1), (2, 1, 0)]
)
def test_how_many_runs_go_on_beside_one(monkeypatch, processors, gigabytes, most):
    monkeypatch.setattr(side_by_side, "processors", lambda: processors)
    monkeypatch.setattr(side_by_side, "free_memory", lambda: gigabytes << 30)
    assert side_by_side.most_beside() == most


def test_the_memory_of_a_container_counts(monkeypatch, tmp_path):
    memory, container = tmp_path / "meminfo", tmp_path / "container"
    monkeypatch.setattr(side_by_side, "MEMORY", memory)
    monkeypatch.setattr(side_by_side, "CONTAINER", container)
    assert side_by_side.free_memory() == 0
    memory.write_text("MemTotal: 9 kB\nMemAvailable:    4 kB\n")
    assert side_by_side.free_memory() == 4096
    container.mkdir()
    (container / "memory.current").write_text("1000\n")
    (container / "memory.max").write_text("max\n")
    assert side_by_side.free_memory() == 4096
    (container / "memory.max").write_text("3000\n")
    assert side_by_side.free_memory() == 2000


# What oneDNN ends

ABORTS = """
    if devices == 2 and {when}:
        os.abort()
"""
WITH_ONEDNN = 'os.environ.get("TF_ENABLE_ONEDNN_OPTS") != "0"'


def test_a_program_that_aborts_with_onednn_is_run_without(examined, monkeypatch):
    """What is not known to be an empty part is a failure still; all other runs are made without oneDNN."""
    monkeypatch.delenv(plan.ONEDNN, raising=False)
    examination, _ = examined(
        ABORTS.format(when=WITH_ONEDNN) + f"    assert devices == 2 or not {WITH_ONEDNN}"
    )
    assert ended(examination) == BOTH
    assert examination.failure == "was ended by SIGABRT: Aborted"
    assert examination.notes == [plan.WITHOUT_ONEDNN]
    kept = [words for words, _, discarded in made(examination) if not discarded]
    assert kept == [
        "on 2 devices (watched)",
        "on 2 devices (without oneDNN)",
        "on 1 device (compared)",
        "with oneDNN, without a smaller last batch",
    ]


def test_a_program_that_aborts_without_onednn_too(examined, monkeypatch):
    monkeypatch.delenv(plan.ONEDNN, raising=False)
    examination, _ = examined(ABORTS.format(when=True))
    assert ended(examination) == [(Role.WATCHED, 2, Outcome.KILLED)]
    assert (examination.failure, examination.notes) == ("was ended by SIGABRT: Aborted", [])
    assert made(examination)[-1] == ("on 2 devices (without oneDNN)", Outcome.KILLED, True)


def test_no_run_begins_beside_a_later_one_when_the_first_has_failed(examined, monkeypatch):
    monkeypatch.delenv(plan.ONEDNN, raising=False)
    monkeypatch.setattr(side_by_side, "BETWEEN_LOOKS", 1)
    wait = f"    time.sleep(0 if {WITH_ONEDNN} else 2)\n"
    program = ABORTS.format(when=True).replace("    os.abort", wait + "        os.abort")
    examination, _ = examined(program)
    words = [each for each, *_ in made(examination)]
    assert words == ["on 2 devices (watched)", "on 2 devices (without oneDNN)"]


def test_a_program_whose_reader_has_turned_onednn_off(examined, monkeypatch):
    monkeypatch.setenv(plan.ONEDNN, "0")
    examination, _ = examined(ABORTS.format(when=True))
    assert "on 2 devices (without oneDNN)" not in [words for words, *_ in made(examination)]
