"""What another project's CI calls: pinned, without secrets, and made of commands that exist."""

import re
import shlex
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
