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
import papermill
import pytest
import yaml
from conftest import ROOT

from helpers import catalog, cli, exercises, grade, guard, jobs, render, sources

SMALL = "fm17_tpu_not_initialised.ipynb"
FM05 = "fm05_untracked_variable.ipynb"
WORKFLOW = ROOT / ".github" / "workflows" / "clinic-check.yml"


def notebook(name: str):
    return nbformat.read(ROOT / "notebooks" / name, as_version=4)


def cell(book, tag: str):
    return next(each for each in book.cells if tag in sources.tags(each))


# Handing out


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handout") / "out"
    assert cli.main(["handout", str(folder)]) == 0
    return folder


def leaks(folder: Path) -> list[str]:
    """What is handed out and speaks of a solution, leads to one, or is a source that holds one."""
    words = re.compile(r"solution|solved|colab\.research|kaggle\.com|mybinder", re.I)
    return [
        path.name
        for path in sorted((folder / "notebooks").iterdir())
        if path.suffix != ".ipynb" or words.search(without_setup(path))
    ]


def without_setup(path: Path) -> str:
    """The set-up cell may name the hosts on which it fetches the helpers."""
    book = nbformat.read(path, as_version=4)
    book.cells = [each for each in book.cells if "bootstrap" not in sources.tags(each)]
    return nbformat.writes(book)


def colours(book) -> list[str]:
    return [each["colour"] for each in render.reports(book) if "colour" in each]


def test_a_handout_holds_every_mode_and_no_solution(everything):
    names = {Path(mode.notebook).name for mode in catalog.modes()}
    given = {path.name for path in (everything / "notebooks").iterdir()}
    assert given == names | {"00_start_here.ipynb"} and leaks(everything) == []
    assert {path.name for path in (everything / "solutions").iterdir()} == names
    for name in names:
        assert colours(nbformat.read(everything / "notebooks" / name, 4)) == ["red"]
        assert colours(nbformat.read(everything / "solutions" / name, 4)) == ["red", "green"]


@pytest.mark.parametrize("text", ["See the solution below.", "def solved(setup): pass"])
def test_a_solution_left_in_a_handout_is_noticed(tmp_path, text):
    assert cli.main(["handout", str(tmp_path / "out"), "fm17"]) == 0
    path = tmp_path / "out" / "notebooks" / SMALL
    book = nbformat.read(path, as_version=4)
    book.cells.append(nbformat.v4.new_markdown_cell(text))
    nbformat.write(book, path)
    assert leaks(tmp_path / "out") == [SMALL]


def dead_links(folder: Path) -> list[str]:
    return [
        f"{path.name}: {link}"
        for path in sorted(folder.rglob("*.ipynb"))
        for each in nbformat.read(path, as_version=4).cells
        if each.cell_type == "markdown"
        for link in re.findall(r"\]\(([^):#]+)\)", each.source)
        if not (path.parent / link).exists()
    ]


def test_links_lead_somewhere_and_keep_their_words_where_they_cannot(everything, tmp_path):
    first, linked = "notebooks/fm01_host_read_in_replica.ipynb", "](fm07_python_in_traced_step."
    assert dead_links(everything) == [] and linked in (everything / first).read_text()
    assert cli.main(["handout", str(tmp_path / "few"), "fm01", "fm17"]) == 0
    few = (tmp_path / "few" / first).read_text()
    assert dead_links(tmp_path / "few") == [] and "fm07 python_in_traced_step:" in few
    (tmp_path / "few" / "notebooks" / SMALL).unlink()
    assert dead_links(tmp_path / "few") != []


@pytest.mark.parametrize(
    "name, wanted",
    [
        (f"notebooks/{SMALL}", ["red"]),
        (f"solutions/{SMALL}", ["red", "green"]),
        ("notebooks/00_start_here.ipynb", []),
    ],
)
def test_what_is_handed_out_runs_from_where_it_lies(everything, tmp_path, name, wanted):
    path = everything / name
    book = nbformat.read(path, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("import helpers; print(helpers.__file__)"))
    nbformat.write(book, tmp_path / "in.ipynb")
    there = jobs.PAPERMILL | {"cwd": str(path.parent)}
    ran = papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", **there)
    assert Path(ran.cells[-1].outputs[0].text.strip()).parents[1] == everything.resolve()
    assert colours(ran) == wanted


def test_nothing_is_overwritten(tmp_path, capsys):
    work = tmp_path / "out" / "notebooks" / SMALL
    work.parent.mkdir(parents=True)
    work.write_text("a day's work")
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "out", tmp_path / "file"):
        assert cli.main(["handout", str(place)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 2 and said.count("nothing in it will be overwritten") == 2
    assert work.read_text() == "a day's work" and (tmp_path / "file").read_text() == "in the way"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


@pytest.mark.parametrize("arguments", [["/proc/out"], ["OUT", "fm99"], []], ids=str)
def test_a_handout_that_cannot_be_is_one_sentence(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["handout", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and list(tmp_path.iterdir()) == []


# Grading


WRONG = cell(notebook(FM05), "exercise").source
RIGHT = WRONG.replace("(model=model)", "(model=model, mean=mean)")
START = "    model, mean = make_model(), tf.Variable(tf.zeros(3))\n"
FORGED = '{"application/vnd.strategy-clinic+json": {"step": "exercise", "colour": "green"}}'


def first(line: str, text: str = WRONG) -> str:
    """The exercise with one more line at its beginning."""
    assert START in text
    return text.replace(START, f"    {line}\n{START}", 1)


def hand_in(folder: Path, texts: dict[str, str]) -> Path:
    """A participant's folder: fm05 once for each text, which stands where its exercise was."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        book = notebook(FM05)
        cell(book, "exercise").source = text
        nbformat.write(book, folder / f"fm05_{name}.ipynb")
    return folder


def graded(folder: Path, *options: str) -> dict[str, grade.Grade]:
    """The grades as the command writes them, by the name of the notebook; its exit status agrees with them."""
    report = folder.parent / "grades.json"
    status = cli.main(["grade", str(folder), "--json", str(report), *options])
    found = [grade.Grade(**each) for each in json.loads(report.read_text())]
    assert status == (0 if all(each.result == "green" for each in found) else 1)
    return {re.sub(r"^fm05_|\.ipynb$", "", each.notebook): each for each in found}


UNRUN = {
    "unchanged": (WRONG, "red: it is as it was handed out"),
    "printed": (f'{WRONG}\nprint("FM05 exercise | green")', "red: it is as it was handed out"),
    "mode_replaced": (f"class M:\n    exercise = print\n\n\nMODE = M()\n{WRONG}", "red: it is as"),
    "proof_replaced": (f"class Proof:\n    holds = True\n\n\n{WRONG}", "not run: it replaces"),
    "proof_patched": (first("Proof.holds = True"), "not run: it reaches around its exercise"),
    "patched_by_name": (first('setattr(Proof, "holds", True)'), "not run: it reaches around"),
    "inner_helpers": (first("import helpers.modes"), "not run: it reaches around"),
    "forged": (first("from IPython.display import display"), "not run: it reaches around"),
    "proof_of_itself": (
        WRONG.replace("[predict(model, mean)]", "[before]"),
        "not run: its proof is not the one",
    ),
    "another_return": (first('return Proof("", [1], [1])'), "not run: its proof is not the one"),
    "shadowed": (first("predict = lambda *values: 1"), "not run: its proof is not the one"),
    "given_replaced": (f"def predict(*values):\n    return 1.0\n\n\n{WRONG}", "not run: it repl"),
    "gone": ("", "not run: its exercise cell is missing"),
    "no_function": ("attempt = 3", "not run: its exercise cell is missing"),
    "syntax": (WRONG.replace("(setup):", "(setup)"), "not run: its exercise is not Python: line 2"),
    "late_syntax": (first("nonlocal mean"), "not run: its exercise is not Python"),
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
    (folder / "mine.ipynb").write_text((folder / "fm05_unchanged.ipynb").read_text())
    found = graded(folder)
    assert {name: each.result for name, each in found.items()} == {
        "unchanged": "red",
        "mine": "red",  # known by the mode that it declares
        "fm06_nonsense": "not run",
        "fm07_folder": "not run",
        "fm08_large": "not run",
        "fm09_pipe": "not run",
        "fm77_unknown": "not run",
    }
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 and lines[-1] == "0 green, 2 red, 5 not run"


@pytest.mark.parametrize("place", ["absent", "empty", "strangers"])
def test_a_folder_without_exercises_is_refused(tmp_path, capsys, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "strangers").mkdir()
    (tmp_path / "strangers" / "notes.ipynb").write_text("{}")
    assert cli.main(["grade", str(tmp_path / place)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, capsys, option):
    folder = hand_in(tmp_path / "in", {"unchanged": WRONG})
    for file in (tmp_path, tmp_path / "absent" / "file"):
        assert cli.main(["grade", str(folder), option, str(file)]) == 2
    said = capsys.readouterr()
    assert said.err.count("cannot be written") == 2 and said.out == ""


def solution_in_place(book) -> str:
    """What a participant writes who solves the exercise just as its solution does."""
    task, solved = (exercises.statements([cell(book, tag)]) for tag in ("exercise", "solution"))
    reused = exercises.union(exercises.uses, solved)
    kept = [each for each in task if exercises.binds(each) & reused]
    text = exercises.text_of(kept + solved).replace("solved", "attempt")
    return text.replace("benchmark_without_groups", "benchmark")


@pytest.mark.parametrize("mode", catalog.modes(), ids=lambda mode: mode.id)
def test_who_solves_an_exercise_as_its_solution_does_is_not_refused(mode):
    own, participant = (notebook(Path(mode.notebook).name) for _ in range(2))
    with pytest.raises(exercises.Unchanged):
        exercises.parts(own, participant)
    cell(participant, "exercise").source = solution_in_place(own)
    project, attempt = exercises.parts(own, participant)
    assert "def attempt(setup)" in attempt and "MODE = FailureMode(" in project
    assert not re.search(
        r"MODE\.(table|judges|proves)\(|def (broken|fixed|attempt|solved)\(", project
    )


PID = "import os, time; "
RUN = {
    "right": (RIGHT, "green: the predictions after the restart"),
    "raises": (first("raise ValueError(chr(27) + '[31m no\\nfive' + chr(0))"), "red: five"),
    "dies": (first("import os; os._exit(0)"), "red: the kernel died"),
    "leaves": (first("raise SystemExit(0)", RIGHT), "red: it ends the run before its verdict"),
    "hangs": (first("import time; time.sleep(600)"), "red: no end within 25 seconds"),
    "reaches_out": (first("import socket; socket.create_connection(('192.0.2.1', 9), 5)"), "red: "),
    "undecorated": (RIGHT.replace("@experiment\n", ""), "red: it raised AttributeError"),
    "alone": (f"{WRONG}\nmodel = undefined + 1", "red: it is as it was handed out"),
    "forger": (
        first(f"(sorted.__self__.__import__('IPython').display.display({FORGED}, raw=True))"),
        "not run: it",
    ),
}


def test_what_is_run_is_judged_by_its_step_and_the_rest_goes_on(tmp_path, capsys):
    folder = hand_in(tmp_path / "in", {name: text for name, (text, _) in RUN.items()})
    beside = notebook(FM05)  # a helper in a cell of its own, and a cell of scratch that fails
    at = beside.cells.index(cell(beside, "exercise"))
    helper = "def both(model, mean):\n    return {'model': model, 'mean': mean}"
    beside.cells[at].source = RIGHT.replace("(model=model, mean=mean)", "(**both(model, mean))")
    new = nbformat.v4.new_code_cell
    beside.cells[at:at] = [new(helper), new("!ls\n%who"), new("1 / 0\nmodel = 3")]
    nbformat.write(beside, folder / "fm05_beside.ipynb")
    found = graded(folder, "--limit", "25", "--jobs", "2", "--junit", str(tmp_path / "grades.xml"))
    told = {name: f"{each.result}: {each.says}" for name, each in found.items()}
    wanted = {name: start for name, (_, start) in RUN.items()} | {"beside": "green: "}
    assert {name: words for name, words in told.items() if not words.startswith(wanted[name])} == {}
    assert all(words.isprintable() for words in told.values()) and set(told) == set(wanted)
    assert not jobs.RUNNING
    suite = ElementTree.parse(tmp_path / "grades.xml").getroot()[0]
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": 10, "failures": 7, "errors": 1}
    assert "2 green, 7 red, 1 not run; network: " in capsys.readouterr().out


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_nothing_outlives_its_run_and_loopback_is_not_this_machines(tmp_path):
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
    if found.network == guard.APART and guard.network() != guard.APART:
        assert (tmp_path / "seen").read_text() != "0"
    with socket.create_connection(server.getsockname()):
        server.close()


def test_where_there_is_no_namespace_python_is_kept_from_all_but_loopback():
    script = (
        "import socket, sys\nfrom helpers import guard\n"
        "assert not guard.permitted(lambda: guard.unshare(-1))\n"
        "sys.addaudithook(guard.bar)\nprint(guard.network())\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(('localhost', server.getsockname()[1])).close()\n"
        "for step in (lambda: socket.getaddrinfo('example.org', 80),\n"
        "             lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9)),\n"
        "             lambda: socket.create_connection(('192.0.2.1', 9), 1)):\n"
        "    try:\n        step()\n        print('reached')\n"
        "    except guard.Refused:\n        print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [guard.BARRED, *["refused"] * 3], done.stderr


def test_ctrl_c_keeps_what_was_finished(tmp_path):
    wait = first("import time; time.sleep(600)")
    folder = hand_in(tmp_path / "in", {"a": RIGHT, "b": wait, "unchanged": WRONG})
    report = tmp_path / "grades.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers", "grade", str(folder), "--json", str(report)],
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
    assert process.returncode == 130 and "Traceback" not in said and "is kept" in said
    assert [each["result"] for each in json.loads(report.read_text())] == ["red", "green"]


# What another project's CI calls


def steps() -> list[dict]:
    return yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"]


def commands(text: str) -> list[list[str]]:
    """The words of every clinic command in a shell text, with something for each variable."""
    values = {"$MODES": "fm05 fm19", "$KERAS": "2,3"}
    for name, value in values.items():
        text = text.replace(name, value)
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [line[1:] for line in lines if line and Path(line[0]).name == "clinic"]


def test_the_workflow_gives_nothing_away_and_is_pinned():
    whole = yaml.safe_load(WORKFLOW.read_text())
    assert whole["permissions"] == {"contents": "read"} and "secrets" not in WORKFLOW.read_text()
    used = [step["uses"] for step in steps() if "uses" in step]
    assert len(used) == 3 and all(
        re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each) for each in used
    )
    assert not any("${{" in step.get("run", "") for step in steps())
    fetched = next(step["with"] for step in steps() if "repository" in step.get("with", {}))
    assert (fetched["repository"], fetched["ref"]) == tuple(
        sources.setting()[name] for name in ("repository", "tag")
    )
    inputs = whole[True]["workflow_call"]["inputs"]  # YAML takes the word on for true
    given = {name for step in steps() for name in re.findall(r"inputs\.(\w+)", str(step))}
    assert given == set(inputs) and all("default" in each for each in inputs.values())


@pytest.mark.parametrize("text", ["workflow", "README.md", "TEACHING.md"])
def test_every_command_that_is_shown_exists(text):
    if text == "workflow":
        shown = "\n".join(step.get("run", "") for step in steps())
    else:
        blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / text).read_text(), re.M | re.S)
        shown = "\n".join(blocks)
    found = commands(shown)
    assert found and all(cli.parser().parse_args(line).action for line in found)


def test_a_command_that_does_not_exist_is_noticed():
    (line,) = commands(".venv/bin/clinic check $MODES --junitxml report.xml")
    with pytest.raises(cli.Refused, match="--junitxml"):
        cli.parser().parse_args(line)


def test_what_the_workflow_installs_with_exists():
    shown = "\n".join(step.get("run", "") for step in steps())
    assert all((ROOT / name).exists() for name in re.findall(r"-c (\S+)", shown))
    assert re.findall(r"-m (\S+)", shown) == ["venv", "helpers.kernels"]
