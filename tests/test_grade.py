"""What a teacher and another project's CI use: handouts, grades and the workflow. Kernels are real; nothing is mocked."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from conftest import ROOT
from strategy_clinic import cli
from strategy_clinic.base import free_names
from strategy_clinic.modes import registry
from strategy_clinic.processes import pool
from strategy_clinic.workshop import exercises, grade, guard
from workshop import FM05, FORGED, RIGHT, WRONG, cell, first, graded, hand_in, notebook

UNRUN = {
    "unchanged": (WRONG, "red: it is as it was handed out"),
    "printed": (f'{WRONG}\nprint("FM05 exercise | green")', "red: it is as it was handed out"),
    "mode_replaced": (
        f"class M:\n    exercise = print\n\n\nsession = M()\n{WRONG}",
        "red: it is as",
    ),
    "proof_replaced": (f"class Proof:\n    holds = True\n\n\n{WRONG}", "not run: it replaces"),
    "proof_patched": (first("Proof.holds = True"), "not run: it reaches around its exercise"),
    "patched_by_name": (first('setattr(Proof, "holds", True)'), "not run: it reaches around"),
    "inner_helpers": (first("import strategy_clinic.modes"), "not run: it reaches around"),
    "forged": (first("from IPython.display import display"), "not run: it reaches around"),
    "proof_of_itself": (
        WRONG.replace("[after]", "[before]"),
        "not run: its proof is not the one",
    ),
    "another_return": (first('return Proof("", [1], [1])'), "not run: its proof is not the one"),
    "shadowed": (first("Proof = print"), "not run: its proof is not the one"),
    "given_replaced": (f"def make_model():\n    return 1.0\n\n\n{WRONG}", "not run: it repl"),
    "gone": ("", "not run: its exercise cell is missing"),
    "no_function": ("attempt = 3", "not run: its exercise cell is missing"),
    "syntax": (WRONG.replace("(setup):", "(setup)"), "not run: its exercise is not Python: line 2"),
    "late_syntax": (first("nonlocal epoch"), "not run: its exercise is not Python"),
    "nested": (f"def attempt(setup): {'(' * 5000}", "not run: its exercise is not Python"),
}


def test_what_needs_no_run_is_graded_without_one(tmp_path):
    folder = hand_in(tmp_path / "in", {name: text for name, (text, _) in UNRUN.items()})
    found = graded(folder)
    told = {name: f"{each.result}: {each.says}" for name, each in found.items()}
    assert {
        name: words for name, words in told.items() if not words.startswith(UNRUN[name][1])
    } == {}
    assert set(told) == set(UNRUN) and {each.network for each in found.values()} == {""}


def test_a_check_of_the_exercise_cannot_be_left_out():
    own, participant = (notebook("fm25_load_outside_scope.ipynb") for _ in range(2))
    task = cell(participant, "exercise")
    task.source = task.source.replace(
        "    checks.assert_distributed(strategy, model.variables)\n", ""
    )
    with pytest.raises(exercises.UserError, match="every check"):
        exercises.both_parts(own, participant)


def test_what_is_no_notebook_of_a_mode_is_one_line(tmp_path, capsys):
    folder = hand_in(tmp_path / "in", {"unchanged": WRONG})
    (folder / "fm06_nonsense.ipynb").write_text("nonsense")
    (folder / "fm07_folder.ipynb").mkdir()
    os.mkfifo(folder / "fm09_pipe.ipynb")
    (folder / "fm77_unknown.ipynb").write_text("{}")
    (folder / "notes.ipynb").write_text("of no mode")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "fm08_old.ipynb").touch()
    (folder / "fm08_large.ipynb").touch()
    os.truncate(folder / "fm08_large.ipynb", grade.LARGEST + 1)
    os.link(folder / "fm05_unchanged.ipynb", os.fsencode(folder / "fm05_a") + b"\n\xe9.ipynb")
    (folder / "mine.ipynb").write_text((folder / "fm05_unchanged.ipynb").read_text())
    found = graded(folder)
    assert {name: each.result for name, each in found.items()} == {
        "unchanged": "red",
        "a ": "red",  # a name that no terminal should be shown as it is
        "mine": "red",  # known by the mode that it opens
        "fm06_nonsense": "not run",
        "fm07_folder": "not run",
        "fm08_large": "not run",
        "fm09_pipe": "not run",
        "fm77_unknown": "not run",
    }
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and lines[-1] == "0 green, 3 red, 5 not run"


@pytest.mark.parametrize("place", ["absent", "empty", "strangers"])
def test_a_folder_without_exercises_is_refused(tmp_path, capsys, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "strangers").mkdir()
    (tmp_path / "strangers" / "notes.ipynb").write_text("{}")
    assert cli.main(["grade", str(tmp_path / place)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_unwritable_report_is_refused_before_any_run(tmp_path, capsys, option):
    folder = hand_in(tmp_path / "in", {"unchanged": WRONG})
    for file in (tmp_path, tmp_path / "absent" / "file"):
        assert cli.main(["grade", str(folder), option, str(file)]) == 2
    said = capsys.readouterr()
    assert said.err.count("cannot be written") == 2 and said.out == ""


def solution_in_place(book) -> str:
    """What a participant writes who solves the exercise just as its solution does."""
    task, solved = (exercises.statements_of([cell(book, tag)]) for tag in ("exercise", "solution"))
    reused = free_names.union(free_names.uses, solved)
    kept = [each for each in task if free_names.binds(each) & reused]
    text = free_names.unparsed(kept + solved).replace("solved", "attempt")
    return text.replace("benchmark_without_groups", "benchmark")


@pytest.mark.parametrize("mode", registry.modes(), ids=lambda mode: mode.id)
def test_solution_of_an_exercise_is_not_refused(mode):
    own, participant = (notebook(Path(mode.notebook).name) for _ in range(2))
    with pytest.raises(exercises.Unchanged):
        exercises.both_parts(own, participant)
    cell(participant, "exercise").source = solution_in_place(own)
    project, attempt = exercises.both_parts(own, participant)
    assert "def attempt(setup)" in attempt and "session = clinic.open(" in project
    assert not re.search(
        r"session\.(table|judges|proves)\(|def (broken|fixed|attempt|solved)\(", project
    )


PID = "import os, time; "
RUN = {
    "right": (RIGHT, "green: the learning rate is that"),
    "raises": (first("raise ValueError(chr(27) + '[31m no\\nfive' + chr(0))"), "red: five"),
    "dies": (first("import os; os._exit(0)"), "red: the kernel died"),
    "leaves": (first("raise SystemExit(0)", RIGHT), "red: it ends the run before its verdict"),
    "hangs": (first("import time; time.sleep(600)"), "red: no end within 10 seconds"),
    "reaches_out": (first("import socket; socket.create_connection(('192.0.2.1', 9), 5)"), "red: "),
    "undecorated": (RIGHT.replace("@experiment\n", ""), "red: it raised AttributeError"),
    "alone": (f"{WRONG}\nmodel = undefined + 1", "red: it is as it was handed out"),
    "forger": (
        first(f"(sorted.__self__.__import__('IPython').display.display({FORGED}, raw=True))"),
        "not run: it",
    ),
}


@pytest.mark.slow
def test_exercises_are_judged_by_their_last_step(tmp_path, capsys):
    folder = hand_in(tmp_path / "in", {name: text for name, (text, _) in RUN.items()})
    beside = notebook(FM05)  # a helper in a cell of its own, and a cell of scratch that fails
    at = beside.cells.index(cell(beside, "exercise"))
    helper = "def both(model, epoch):\n    return {'model': model, 'epoch': epoch}"
    beside.cells[at].source = RIGHT.replace("(model=model, epoch=epoch)", "(**both(model, epoch))")
    new = nbformat.v4.new_code_cell
    beside.cells[at:at] = [new(helper), new("!ls\n%who"), new("1 / 0\nmodel = 3")]
    nbformat.write(beside, folder / "fm05_beside.ipynb")
    found = graded(folder, "--limit", "10", "--jobs", "2", "--junit", str(tmp_path / "grades.xml"))
    told = {name: f"{each.result}: {each.says}" for name, each in found.items()}
    wanted = {name: start for name, (_, start) in RUN.items()} | {"beside": "green: "}
    assert {name: words for name, words in told.items() if not words.startswith(wanted[name])} == {}
    assert all(words.isprintable() for words in told.values()) and set(told) == set(wanted)
    assert not pool.RUNNING
    suite = ElementTree.parse(tmp_path / "grades.xml").getroot()[0]
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": 10, "failures": 7, "errors": 1}
    assert "2 green, 7 red, 1 not run; network: " in capsys.readouterr().out


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_nothing_outlives_its_run(tmp_path):
    pids, server = tmp_path / "pids", socket.create_server(("127.0.0.1", 0))
    leave = f"echo $$ >> {pids}; exec sleep 600"
    lines = [
        "import os, socket, subprocess, time",
        f"subprocess.Popen(['bash', '-c', {leave!r}], start_new_session=True)",
        f"subprocess.run(['bash', '-c', {f'(setsid bash -c {shlex.quote(leave)} &)'!r}])",
        f"while not os.path.exists({str(pids)!r}) or len(open({str(pids)!r}).readlines()) < 2:",
        "    time.sleep(0.05)",
        f"seen = socket.socket().connect_ex({server.getsockname()!r})",
        f"open({str(tmp_path / 'seen')!r}, 'w').write(str(seen))",
    ]
    folder = hand_in(tmp_path / "in", {"leaver": first("\n    ".join(lines), RIGHT)})
    (found,) = graded(folder).values()
    assert found.result == "green"
    deadline = time.monotonic() + 20
    left = [int(pid) for pid in pids.read_text().split()]
    while any(is_alive(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(left) == 2 and not any(is_alive(pid) for pid in left)
    if found.network == guard.NAMESPACE and guard.network() != guard.NAMESPACE:
        assert (tmp_path / "seen").read_text() != "0"
    with socket.create_connection(server.getsockname()):
        server.close()


@pytest.mark.slow
def test_without_a_namespace_only_loopback_is_reached():
    script = (
        "import socket, sys\nfrom strategy_clinic.forkserver import isolation\nfrom strategy_clinic.workshop import guard\n"
        "assert not isolation.is_permitted(lambda: isolation.unshare(-1))\n"
        "sys.addaudithook(guard.refuse_outside)\nprint(guard.network())\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(('localhost', server.getsockname()[1])).close()\n"
        "for step in (lambda: socket.getaddrinfo('example.org', 80),\n"
        "             lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9)),\n"
        "             lambda: socket.create_connection(('192.0.2.1', 9), 1)):\n"
        "    try:\n        step()\n        print('reached')\n"
        "    except guard.UserError:\n        print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [guard.REFUSED, *["refused"] * 3], done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_finished(tmp_path):
    wait = first("import time; time.sleep(600)")
    folder = hand_in(tmp_path / "in", {"a": RIGHT, "b": wait, "unchanged": WRONG})
    report = tmp_path / "grades.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "strategy_clinic", "grade", str(folder), "--json", str(report)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while "green" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert (
        process.returncode == 130
        and "Traceback" not in said
        and "finished results are stored" in said
    )
    assert [each["result"] for each in json.loads(report.read_text())] == ["red", "green"]
