"""Workflows, the one that another project's CI calls and our own: pinned, without secrets, made of commands that exist."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import documented
import make_lanes
import pytest
import yaml
from conftest import ROOT
from strategy_clinic import cli
from strategy_clinic.base import errors, project

WORKFLOW = ROOT / ".github" / "workflows" / "clinic-check.yml"


WORKFLOWS = sorted(WORKFLOW.parent.glob("*.yml"))
MAY = {
    ("book", "publish"): {"pages": "write", "id-token": "write"}
}  # all others read the repository


# All of them


def jobs_of(path: Path) -> dict:
    return yaml.safe_load(path.read_text())["jobs"]


def steps_in(path: Path) -> list[dict]:
    return [step for job in jobs_of(path).values() for step in job["steps"]]


def loose_in(text: str, name: str) -> list[str]:
    """What a workflow's text has that none may have."""
    whole = yaml.safe_load(text)
    steps = [step for job in whole["jobs"].values() for step in job["steps"]]
    problems = [] if whole["permissions"] == {"contents": "read"} else ["permissions"]
    problems += [
        f"permissions of {job}"
        for job, facts in whole["jobs"].items()
        if facts.get("permissions", {}) != MAY.get((name, job), {})
    ]
    problems += ["secrets"] * ("secrets" in text) + ["pull_request_target"] * (
        "pull_request_target" in text
    )
    pinned = re.compile(r"actions/[\w-]+@[0-9a-f]{40}")
    used = [step["uses"] for step in steps if "uses" in step]
    problems += [each for each in used if not pinned.fullmatch(each)]
    problems += [step["run"] for step in steps if "${{" in step.get("run", "")]
    fetched = [
        step.get("with", {}) for step in steps if "actions/checkout@" in step.get("uses", "")
    ]
    problems += ["keeps the token"] * any(
        each.get("persist-credentials") is not False for each in fetched
    )
    endless = [job for job, facts in whole["jobs"].items() if "timeout-minutes" not in facts]
    return problems + [f"{job} has no limit" for job in endless]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_may_more_than_it_must(path):
    assert loose_in(path.read_text(), path.stem) == []


@pytest.mark.parametrize(
    "old, new",
    [("@11bd71901bbe5b1630ceea73d27597364c9af683", "@v4"), ("contents: read", "contents: write")]
    + [("persist-credentials: false", "fetch-depth: 1"), ("    timeout-minutes: 40\n", "")]
    + [("    timeout-minutes", "    permissions: write-all\n    timeout-minutes")]
    + [
        ("run: make test", "run: echo ${{ github.head_ref }}"),
        ("pull_request:", "pull_request_target:"),
    ],
)
def test_a_loose_workflow_is_noticed(old, new):
    text = (WORKFLOW.parent / "tests.yml").read_text()
    assert old in text and loose_in(text.replace(old, new, 1), "tests") != []


def test_there_is_one_for_each_occasion():
    on = {path.stem: yaml.safe_load(path.read_text())[True] for path in WORKFLOWS}
    assert set(on["tests"]) == {"push", "pull_request"}
    assert "schedule" in on["nightly"] and on["book"]["push"] == {"tags": ["v*"]}
    assert project.setting()["tag"].startswith("v")
    first, last = re.findall(r"3\.(\d+)", project.project()["requires-python"])
    pythons = [f"3.{minor}" for minor in range(int(first), int(last))]
    for name, job in (("tests", "quick"), ("nightly", "everything")):
        matrix = jobs_of(WORKFLOW.parent / f"{name}.yml")[job]["strategy"]["matrix"]
        assert matrix["python"] == pythons


def test_what_one_machine_runs_is_run_in_jobs_side_by_side():
    """Each target of `.ci/run` is a job of its own, and the night runs that as a whole."""
    script = (ROOT / ".ci" / "run").read_text()
    named = set(re.findall(r"targets[+]?=\(\"?([a-z]+)", script)) | set(
        re.findall(r"^make ([a-z]+)$", script, re.M)
    )
    jobs = steps_in(WORKFLOW.parent / "tests.yml")
    started = {each["run"].removeprefix("make ") for each in jobs if "run" in each}
    assert started == named == {"test", "quick", "colab", "nbgrader"}
    assert ".ci/run" in [each.get("run") for each in steps_in(WORKFLOW.parent / "nightly.yml")]


def run_step(workflow: str, name: str, folder: Path, **given) -> subprocess.CompletedProcess:
    """A step as the runner's shell runs it, in a folder of its own."""
    step = next(
        each for each in steps_in(WORKFLOW.parent / f"{workflow}.yml") if each.get("name") == name
    )
    values = dict.fromkeys(step.get("env", {}), "") | {"PATH": os.environ["PATH"]} | given
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=folder, env=values, capture_output=True, text=True
    )


def stand_in(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("status", [0, 1])
def test_news_are_kept_and_fail_the_weekly_run(tmp_path, status):
    stand_in(tmp_path / ".venv" / "bin" / "clinic", f'echo "news: $*"; exit {status}')
    assert run_step("nightly", "Check", tmp_path).returncode == status
    asked = "news: check --keras 2,3 --jobs 2 --junit report.xml --save found\n"
    assert (tmp_path / "news.txt").read_text() == asked
    kept = steps_in(WORKFLOW.parent / "nightly.yml")[-1]["with"]["path"].split()
    assert kept == ["news.txt", "report.xml", "cells.xml", "found"]


@pytest.mark.parametrize("status", [0, 1])
def test_the_quick_cells_are_run_on_the_nightly_and_their_news_are_kept(tmp_path, status):
    stand_in(tmp_path / ".venv" / "bin" / "python", f'echo "$*"; exit {status}')
    (tmp_path / "news.txt").write_text("news: a\n")
    assert run_step("nightly", "Quick cells", tmp_path).returncode == status
    first, asked = (tmp_path / "news.txt").read_text().splitlines()
    assert first == "news: a" and "--pyargs strategy_clinic.sweep.runs.test_cells" in asked
    assert "-m quick -rf --junitxml cells.xml" in asked


@pytest.mark.parametrize("workflow", ["nightly", "clinic-check"])
def test_a_nightly_is_installed_by_the_table_of_lanes(tmp_path, workflow):
    stand_in(tmp_path / "bin" / "python", 'echo "python $*"')
    stand_in(tmp_path / ".venv" / "bin" / "python", 'echo "then $*"')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = run_step(workflow, "Install", tmp_path, PATH=path, NIGHTLY="true")
    assert "python tools/make_lanes.py nightly --only-at .venv\n" in done.stdout
    assert done.returncode == 0


def test_what_our_own_workflows_start_is_there():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for target, tool in [("book", "sphinx-build"), ("quick", "pytest"), ("types", "mypy")]:
        listed = subprocess.run(["make", "-nB", target], cwd=ROOT, capture_output=True, text=True)
        assert listed.returncode == 0 and f"/{tool}" in listed.stdout


@pytest.mark.parametrize("installed", [["3.11"], ["3.11", "3.13"], ["3.11", "3.12", "3.13"]])
def test_the_oldest_and_the_newest_python_are_tested(tmp_path, installed):
    """`.ci/run` with stand-ins for make and Python: it names what it leaves out."""
    for name in ("bash", "dirname", "id", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))
    stand_in(tmp_path / "make", 'echo "make $*"')
    stand_in(tmp_path / "python3", "echo 3.11")
    stand_in(tmp_path / "chromium", "")
    for version in installed:
        stand_in(tmp_path / f"python{version}", "")
    run = [ROOT / ".ci" / "run"]
    done = subprocess.run(run, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "make test" in lines and "make quick-3.11" not in lines
    assert "make quick-3.12" not in lines
    assert ("make quick-3.13" in lines) is ("3.13" in installed)
    left_out = "no Python 3.13 on this machine: make quick-3.13 is left out"
    assert (left_out in lines) is ("3.13" not in installed)
    assert ("make colab" in lines) is ("3.13" in installed)


# The table of lanes


def test_a_lane_is_made_of_what_the_project_needs_and_of_its_own_versions(tmp_path):
    lane = make_lanes.described()["2.20"]
    made, versions, alone, kernel = make_lanes.commands(lane, tmp_path)
    assert "tensorflow-cpu==2.20.0" in versions and "--no-deps" in alone and "-e" in alone
    names = {re.match(r"[\w-]+", each)[0] for each in make_lanes.others()}
    assert {"papermill", "nbval", "ipykernel"} <= names and not names & make_lanes.OURS


def test_a_lane_that_is_there_is_not_made_again(tmp_path, monkeypatch, capsys):
    run = []
    monkeypatch.setattr(make_lanes.subprocess, "run", lambda command, **_: run.append(command))
    tmp_path.joinpath("x").mkdir()
    make_lanes.make("2.19", tmp_path / "x")
    make_lanes.make("2.19", tmp_path / "x")
    assert len(run) == 4 and "is there" in capsys.readouterr().out
    make_lanes.make("2.18", tmp_path / "x")
    assert len(run) == 8


# What another project's CI calls


def steps() -> list[dict]:
    return yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"]


def commands(text: str) -> list[list[str]]:
    """The words of every clinic command in a shell text, with something for each variable."""
    values = {"$MODES": "fm05 fm19", "$KERAS": "2,3", "$EXAMINE": "train.py --epochs 1"}
    for name, value in values.items():
        text = text.replace(name, value)
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [line[1:] for line in lines if line and Path(line[0]).name == "clinic"]


def test_the_workflow_gives_nothing_away_and_is_pinned():
    whole = yaml.safe_load(WORKFLOW.read_text())
    assert whole["permissions"] == {"contents": "read"} and "secrets" not in WORKFLOW.read_text()
    used = [step["uses"] for step in steps() if "uses" in step]
    assert len(used) == 4 and all(
        re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each) for each in used
    )
    assert not any("${{" in step.get("run", "") for step in steps())
    fetched = next(step["with"] for step in steps() if "repository" in step.get("with", {}))
    called = {"repository": "${{ job.workflow_repository }}", "ref": "${{ job.workflow_sha }}"}
    assert fetched == called | {"persist-credentials": False}, "what was called, at its commit"
    inputs = whole[True]["workflow_call"]["inputs"]  # YAML takes the word on for true
    given = {name for step in steps() for name in re.findall(r"inputs\.(\w+)", str(step))}
    assert given == set(inputs)
    assert all("default" in each for each in inputs.values())


@pytest.mark.parametrize("text", ["workflow", "documentation"])
def test_every_command_that_is_shown_exists(text):
    if text == "workflow":
        shown = "\n".join(step.get("run", "") for step in steps())
    else:
        shown = "\n".join(command.split(" < ")[0] for command in documented.all_commands())
    found = commands(shown)
    assert found and all(cli.parser().parse_args(line).action for line in found)


def test_a_command_that_does_not_exist_is_noticed():
    (line,) = commands(".venv/bin/clinic check $MODES --junitxml report.xml")
    with pytest.raises(errors.UserError, match="--junitxml"):
        cli.parser().parse_args(line)


def test_what_the_workflow_installs_with_exists():
    shown = "\n".join(step.get("run", "") for step in steps())
    assert all((ROOT / name).exists() for name in re.findall(r"install -c (\S+)", shown))
    started = ["venv", "strategy_clinic.forkserver.kernelspec", "venv"]
    assert re.findall(r"-m (\S+)", shown) == started


@pytest.mark.parametrize("commit, status", [("0" * 40, 0), ("", 1)])
def test_a_server_that_does_not_say_what_was_called_is_refused(tmp_path, commit, status):
    """Without a commit and a repository, `checkout` would take the caller's own."""
    done = run_step("clinic-check", "Find this workflow", tmp_path, COMMIT=commit)
    assert done.returncode == status and done.stdout.count("\n") == status
    assert steps()[0]["name"] == "Find this workflow"


@pytest.mark.parametrize("quick, words", [("--quick", ["--quick"]), ("", [])])
def test_a_quick_check_is_asked_for_by_one_word(tmp_path, quick, words):
    stand_in(tmp_path / ".venv" / "bin" / "clinic", 'echo "$@"')
    done = run_step("clinic-check", "Check", tmp_path, MODES="fm05", QUICK=quick, KERAS="3")
    asked = ["check", "fm05", *words, "--keras", "3", "--jobs", "2", "--junit", "report.xml"]
    assert done.stdout.split() == asked


HOSTILE = "train.py $(touch made) `touch made`; touch made | touch made * --name=$HOME"


@pytest.mark.parametrize("name, variable", [("Check", "MODES"), ("Examine", "EXAMINE")])
def test_an_input_is_words_and_never_code(tmp_path, name, variable):
    """The step as a shell runs it, with a `clinic` that writes down what it is asked."""
    (tmp_path / "program").mkdir()
    for folder in (
        "bin",
        ".venv/bin",
    ):  # a Python that makes environments, and knows where packages are
        makes = f'[ "$2" != venv ] && echo {tmp_path} || {{ mkdir -p "$3/bin"; cp "$0" "$3/bin"; }}'
        stand_in(tmp_path / folder / "python", makes)
    asked = tmp_path / ".venv" / "bin" / "clinic"
    asked.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {tmp_path}/asked\n')
    asked.chmod(0o755)
    step = next(each for each in steps() if each.get("name") == name)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    given = dict.fromkeys(step["env"], "") | {variable: HOSTILE, "PATH": path}
    folder = tmp_path / step.get("working-directory", ".")
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=given, check=True)
    words = (tmp_path / "asked").read_text().splitlines()
    assert [word for word in words if word in HOSTILE.split()][
        : len(HOSTILE.split())
    ] == HOSTILE.split()
    assert not list(tmp_path.rglob("made"))


def wheel_of(folder: Path, version: str) -> Path:
    """A package with nothing in it but its version, as a file that pip installs without a network."""
    path = folder / f"wanted-{version}-py3-none-any.whl"
    info = f"wanted-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wanted.py", f"V = {version}")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: wanted\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.slow
def test_what_a_program_needs_changes_nothing_that_the_clinic_runs_on(tmp_path):
    """The clinic has one version of a package, the program asks for another, and finds all else of the clinic's."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / ".venv"], check=True)
    pip = [tmp_path / ".venv" / "bin" / "pip", "install", "-q", wheel_of(tmp_path, "1")]
    subprocess.run(pip, check=True)
    (site,) = (tmp_path / ".venv").glob("lib/*/site-packages")
    (site / "clinics_own.py").touch()
    say = "import clinics_own, wanted; print(wanted.V)"
    stand_in(tmp_path / ".venv" / "bin" / "clinic", f'"$3" -c "{say}"')
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "needs.txt").write_text(str(wheel_of(tmp_path, "2")))
    done = run_step("clinic-check", "Examine", tmp_path / "program", REQUIREMENTS="needs.txt")
    assert done.stdout.endswith("\n2\n"), done.stdout + done.stderr
    here = [tmp_path / ".venv" / "bin" / "python", "-c", say]
    assert subprocess.run(here, capture_output=True, text=True).stdout == "1\n"


def test_what_it_leaves_is_handed_over():
    """Each file that a command writes is in the one artifact."""
    shown = "\n".join(step.get("run", "") for step in steps())
    written = {Path(each).name for each in re.findall(r"--(?:junit|sarif) (\S+)", shown)}
    (kept,) = [
        step["with"]["path"] for step in steps() if "upload-artifact" in step.get("uses", "")
    ]
    assert written == set(kept.split()) == {"report.xml", "examined.sarif"}
