"""What another project's CI calls: pinned, without secrets, and made of commands that exist."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from helpers import cli
from helpers.base import project, refusals

WORKFLOW = ROOT / ".github" / "workflows" / "clinic-check.yml"


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
    assert (fetched["repository"], fetched["ref"]) == tuple(
        project.setting()[name] for name in ("repository", "tag")
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
    with pytest.raises(refusals.Refused, match="--junitxml"):
        cli.parser().parse_args(line)


def test_what_the_workflow_installs_with_exists():
    shown = "\n".join(step.get("run", "") for step in steps())
    assert all((ROOT / name).exists() for name in re.findall(r"-c (\S+)", shown))
    assert re.findall(r"-m (\S+)", shown) == ["venv", "helpers.processes.kernels"]


HOSTILE = "train.py $(touch made) `touch made`; touch made | touch made * --name=$HOME"


@pytest.mark.parametrize("name, variable", [("Check", "MODES"), ("Examine", "EXAMINE")])
def test_an_input_is_words_and_never_code(tmp_path, name, variable):
    """The step as a shell runs it, with a `clinic` that writes down what it is asked."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "program").mkdir()
    asked = tmp_path / ".venv" / "bin" / "clinic"
    asked.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {tmp_path}/asked\n')
    asked.chmod(0o755)
    step = next(each for each in steps() if each.get("name") == name)
    given = dict.fromkeys(step["env"], "") | {variable: HOSTILE, "PATH": os.environ["PATH"]}
    folder = tmp_path / step.get("working-directory", ".")
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=given, check=True)
    words = (tmp_path / "asked").read_text().splitlines()
    assert [word for word in words if word in HOSTILE.split()][
        : len(HOSTILE.split())
    ] == HOSTILE.split()
    assert not list(tmp_path.rglob("made"))


def test_what_it_leaves_is_handed_over():
    """Each file that a command writes is in the one artifact."""
    shown = "\n".join(step.get("run", "") for step in steps())
    written = {Path(each).name for each in re.findall(r"--(?:junit|sarif) (\S+)", shown)}
    (kept,) = [
        step["with"]["path"] for step in steps() if "upload-artifact" in step.get("uses", "")
    ]
    assert written == set(kept.split()) == {"report.xml", "examined.sarif"}
