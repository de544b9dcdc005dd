"""What a teacher and another project's CI use: handouts, grades and the workflow. Kernels are real; nothing is mocked."""

import ast
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT
from strategy_clinic import cli
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.observer import landlock
from strategy_clinic.processes import no_network, pool
from strategy_clinic.workshop import exercises, expected, grade, judge
from workshop import RIGHT, WRONG, cell, first, graded, hand_in, notebook

UNRUN = {
    "unchanged": (WRONG, "red: it is as it was handed out"),
    "commented": (f"{WRONG}\n# I have tried", "red: it is as it was handed out"),
    "printed": (
        f'{WRONG}\nprint("bias after one step: [0.05]")',
        "red: it is as it was handed out",
    ),
    "print_replaced": (first("print = repr"), "not run: it uses"),
    "print_defined": (first("def print(*words): pass"), "not run: it uses"),
    "written": (first("import sys; sys.stdout.write('[0.05]')"), "not run: it uses"),
    "by_name": (first('setattr(tf, "ones", tf.zeros)'), "not run: it uses"),
    "package": (first("import strategy_clinic.modes"), "not run: it uses"),
    "gone": ("", "not run: its exercise cell is missing"),
    "syntax": (
        WRONG.replace("axis=1)", "axis=1"),
        "red: Python cannot read it: line 16 of the cell, 'errors = tf.reduce_sum(",
    ),
    "late_syntax": (first("nonlocal epoch"), "red: Python cannot read it"),
    "nested": (first(f"a = {'(' * 5000}"), "red: Python cannot read it"),
    "long": (first(f"a = {'+'.join('1' * 5000)}"), "red: Python cannot read it"),
}


def test_what_needs_no_run_is_graded_without_one(tmp_path):
    folder = hand_in(tmp_path / "in", {name: text for name, (text, _) in UNRUN.items()})
    found = graded(folder)
    told = {name: f"{each.result}: {each.says}" for name, each in found.items()}
    assert {
        name: words for name, words in told.items() if not words.startswith(UNRUN[name][1])
    } == {}
    assert set(told) == set(UNRUN) and {each.network for each in found.values()} == {""}


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
    os.link(folder / "fm37_unchanged.ipynb", os.fsencode(folder / "fm37_a") + b"\n\xe9.ipynb")
    (folder / "mine.ipynb").write_text((folder / "fm37_unchanged.ipynb").read_text())
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
    assert lines[-1] == "0 green, 3 red, 0 to read, 5 not run"


@pytest.mark.parametrize("place", ["absent", "empty", "others"])
def test_a_folder_without_exercises_is_refused(tmp_path, capsys, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "notes.ipynb").write_text("{}")
    assert cli.main(["grade", str(tmp_path / place)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("option", ["--csv", "--json", "--junit"])
def test_unwritable_report_is_refused_before_any_run(tmp_path, capsys, option):
    folder = hand_in(tmp_path / "in", {"unchanged": WRONG})
    for file in (tmp_path, tmp_path / "absent" / "file"):
        assert cli.main(["grade", str(folder), option, str(file)]) == 2
    said = capsys.readouterr()
    assert said.err.count("cannot be written") == 2 and said.out == ""


@pytest.mark.parametrize("mode", registry.modes(), ids=lambda mode: mode.id)
def test_the_solution_of_an_exercise_is_not_refused(mode):
    task = files.program_text(mode.id, "exercise")
    participant = notebook(Path(mode.notebook).name)
    with pytest.raises(exercises.Unchanged):
        exercises.attempt_in(participant, task)
    solution = files.program_text(mode.id, "solution")
    cell(participant, "exercise").source = f"{exercises.EXERCISE}\n{solution}"
    attempt = exercises.attempt_in(participant, task)
    assert ast.dump(attempt.tree) == ast.dump(ast.parse(solution))
    assert judge.doubts_of(attempt, expected.expected_of(mode.id)) == []


RUN = {
    "right": (RIGHT, "green: bias after one step: [0.05]"),
    "raises": (
        first("raise ValueError(chr(27) + '[31m no\\nfive' + chr(0))"),
        "red: ValueError: five",
    ),
    "dies": (first("import os; os._exit(0)"), "red: its process ended before the last line"),
    "leaves": (first("raise SystemExit(0)", RIGHT), "red: its process ended before the last line"),
    "hangs": (first("import time; time.sleep(600)"), "red: it did not end within 15 seconds"),
    "reaches_out": (first("import socket; socket.create_connection(('192.0.2.1', 9), 5)"), "red: "),
    "otherwise": (f"{WRONG}\nmodel = undefined + 1", "red: NameError: name 'undefined'"),
    "wrong": (first("tries = 1"), "red: it prints 'bias after one step: [0.]', and right is"),
}


@pytest.mark.slow
@pytest.mark.thorough
def test_exercises_are_judged_by_what_they_print(tmp_path, capsys):
    folder = hand_in(tmp_path / "in", {name: text for name, (text, _) in RUN.items()})
    found = graded(
        folder,
        "--limit",
        "15",
        "--jobs",
        "2",
        "--junit",
        str(tmp_path / "grades.xml"),
        "--csv",
        str(tmp_path / "grades.csv"),
    )
    told = {name: f"{each.result}: {each.says}" for name, each in found.items()}
    wanted = {name: start for name, (_, start) in RUN.items()}
    assert {name: words for name, words in told.items() if not words.startswith(wanted[name])} == {}
    assert all(words.isprintable() for words in told.values()) and set(told) == set(wanted)
    assert not pool.RUNNING
    suite = ElementTree.parse(tmp_path / "grades.xml").getroot()[0]
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": 8, "failures": 7, "errors": 0}
    said = capsys.readouterr().out
    assert (tmp_path / "grades.csv").read_text() == "participant,fm37,points\n" + "".join(
        f"{name},{int(name == 'right')},{int(name == 'right')}\n" for name in sorted(RUN)
    )
    assert "1 green, 7 red, 0 to read, 0 not run; network: " in said and "; files: " in said


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_nothing_outlives_its_run(tmp_path):
    pids, server = (
        Path("/dev/shm") / f"{tmp_path.name}-pids",
        socket.create_server(("127.0.0.1", 0)),
    )
    seen = pids.with_name(
        f"{tmp_path.name}-seen"
    )  # shared memory can be written, other folders cannot
    leave = f"echo $$ >> {pids}; exec sleep 600"
    lines = [
        "import os, socket, subprocess, time",
        f"subprocess.Popen(['bash', '-c', {leave!r}], start_new_session=True)",
        f"subprocess.run(['bash', '-c', {f'(setsid bash -c {shlex.quote(leave)} &)'!r}])",
        f"while not os.path.exists({str(pids)!r}) or len(open({str(pids)!r}).readlines()) < 2:",
        "    time.sleep(0.05)",
        f"seen = socket.socket().connect_ex({server.getsockname()!r})",
        f"open({str(seen)!r}, 'w').write(str(seen))",
    ]
    folder = hand_in(tmp_path / "in", {"leaver": first("\n".join(lines), RIGHT)})
    (found,) = graded(folder).values()
    assert found.result == "green"
    deadline = time.monotonic() + 20
    left = [int(pid) for pid in pids.read_text().split()]
    while any(is_alive(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(left) >= 2 and not any(is_alive(pid) for pid in left)
    if found.network == no_network.NAMESPACE and no_network.network() != no_network.NAMESPACE:
        assert seen.read_text() != "0"
    with socket.create_connection(server.getsockname()):
        server.close()
    pids.unlink()
    seen.unlink()


FORBIDDEN = """import os, pathlib
from concurrent.futures import ThreadPoolExecutor
def tried(step):
    try:
        return str(step())
    except OSError as error:
        return type(error).__name__
place = pathlib.Path({place!r})
found = ['SECRET_OF_TEACHER' in os.environ, pathlib.Path.home() == pathlib.Path({home!r})]
found += [tried(lambda: open('/proc/{pid}/mem', 'rb').close())]
found += [tried(lambda: (place / 'new').write_text('x')), tried(lambda: os.remove(place / 'kept'))]
found += [tried(lambda: ThreadPoolExecutor().submit((place / 'kept').write_text, '').result())]
pathlib.Path('mine').write_text('x')
raise ValueError(found)"""


@pytest.mark.slow
@pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")
def test_files_and_the_environment_are_out_of_reach(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_TEACHER", "abc123")
    (tmp_path / "kept").touch()
    words = FORBIDDEN.format(place=str(tmp_path), home=str(Path.home()), pid=os.getpid())
    folder = hand_in(tmp_path / "in", {"thief": first(words)})
    (found,) = graded(folder).values()
    refused = ["PermissionError"] * 4
    assert found.says == f"ValueError: {[False, False, *refused]}"
    assert found.files == no_network.READ_ONLY and (tmp_path / "kept").exists()


@pytest.mark.slow
def test_without_a_namespace_only_loopback_is_reached():
    script = (
        "import socket, sys\nfrom strategy_clinic.base import namespaces\nfrom strategy_clinic.forkserver import isolation\n"
        "from strategy_clinic.processes import no_network\n"
        "assert not isolation.is_permitted(lambda: namespaces.unshare(-1))\n"
        "sys.addaudithook(no_network.refuse_outside)\nprint(no_network.network())\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(('localhost', server.getsockname()[1])).close()\n"
        "for step in (lambda: socket.getaddrinfo('example.org', 80),\n"
        "             lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9)),\n"
        "             lambda: socket.create_connection(('192.0.2.1', 9), 1)):\n"
        "    try:\n        step()\n        print('reached')\n"
        "    except no_network.UserError:\n        print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [no_network.REFUSED, *["refused"] * 3], done.stderr


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


# In a container


def container_commands() -> list[list[str]]:
    (block,) = re.findall(r"^```bash\n(.*?)^```", (ROOT / "TEACHING.md").read_text(), re.M | re.S)
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]


def test_the_container_has_what_its_command_runs():
    build, _, run = container_commands()
    recipe = (ROOT / build[build.index("-f") + 1]).read_text().splitlines()
    copied = [word for line in recipe if line.startswith("COPY") for word in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    image = build[build.index("-t") + 1]
    inside = run[run.index(image) + 1 :]
    assert inside[0] == "clinic" and cli.parser().parse_args(inside[1:]).command == "grade"
    assert {"none", "--read-only", "--cap-drop"} <= set(run[: run.index(image)])


@pytest.mark.skipif(not shutil.which("docker"), reason="docker is not installed")
def test_docker_knows_each_option():
    build, _, run = container_commands()
    for words in (build, run[: run.index("clinic-grading")]):
        said = subprocess.run(["docker", words[1], "--help"], capture_output=True, text=True).stdout
        options = [word for word in words[2:] if re.fullmatch(r"-[a-z]|--[a-z-]+", word)]
        assert [each for each in options if not re.search(rf"(^|\s){each}[ ,]", said)] == []
