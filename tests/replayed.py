"""Examinations in tests that are marked `replayed` are replayed from tests/recordings; what is out of date there is run.

The environment variable EXAMINATIONS asks for something else: see MODES. Tests that are marked `live` always run their programs.
"""

import functools
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import recordings
from recordings import Recorded
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.processes import python_process

FOLDER = Path(__file__).with_name("recordings")
MODES = {
    "replay": "what is recorded is replayed",
    "record": "what is out of date is run, and recorded",
    "live": "everything is run",
    "cover": "as replay, but the fewest are run that have every kind of run that is recorded",
}
MODE = os.environ.get("EXAMINATIONS", "replay")
Runs = Sequence[tuple[str, Sequence[Mapping[str, Any]]]]  # of one examination, as they are recorded
LAZY = "started when a program runs"  # in place of the path of a fork server


@pytest.fixture(autouse=True)
def examinations(request):
    """Gives the examiner sandboxes that replay what is recorded for this test, one file for each examination.

    Without `monkeypatch`: what every test has would come before the fixtures of a test, and be undone after them.
    """
    assert MODE in MODES, f"EXAMINATIONS={MODE} is not known; valid: {', '.join(MODES)}"
    if not is_replayed(request.node) or is_live(request.node):
        yield
        return
    start, numbers = python_process.fork_server, itertools.count(1)

    def sandbox(program):
        path = path_of(request.node, next(numbers))
        if not recordings.stale(path, program):
            return recordings.ReplayedSandbox(program, Recorded.read(path))
        if program.fork_server == LAZY:
            program = replace(program, fork_server=start())
        return recordings.RecordingSandbox(program, path) if MODE == "record" else Sandbox(program)

    lazy = mock.patch.object(python_process, "fork_server", lambda *_: LAZY)
    with lazy, recordings.sandboxes(sandbox):
        yield


def is_replayed(node: pytest.Item) -> bool:
    return bool(node.get_closest_marker("replayed")) and not node.get_closest_marker("live")


def path_of(node: pytest.Item, number: int) -> Path:
    """Returns the file for an examination of a test, by whose name it can be found."""
    name = re.sub(r"\W+", "-", node.name).strip("-")[:80]
    suffix = "" if number == 1 else f"-{number}"
    return FOLDER / node.path.stem / f"{name}-{recordings.digest([node.name])[:4]}{suffix}.json.xz"


# The fewest tests that show that programs run as recorded. What events they have follows from the observer, a change of which
# makes all recordings out of date.


def is_live(item: pytest.Item) -> bool:
    return MODE == "live" or MODE == "cover" and path_of(item, 1) in chosen()


@functools.cache
def chosen() -> frozenset[Path]:
    """Returns the recordings of the tests that are run."""
    files = {path: Recorded.read(path).runs for path in sorted(FOLDER.glob("test_*/*.xz"))}
    kinds = {path: kinds_in(runs) for path, runs in files.items()}
    seconds = {
        path: sum(run["seconds"] for _, made in runs for run in made)
        for path, runs in files.items()
    }
    return frozenset(covering(kinds, seconds))


def covering(kinds: Mapping[Path, set[str]], seconds: Mapping[Path, float]) -> list[Path]:
    """Returns files that together have all kinds: the one that adds most to those before it for each second comes next."""
    left, found = set().union(*kinds.values()), []
    while left:
        found.append(max(kinds, key=lambda path: len(kinds[path] & left) / seconds[path]))
        left -= kinds[found[-1]]
    return found


def kinds_in(runs: Runs) -> set[str]:
    """Returns for what runs were made, with which options, and how they ended.

    Without variables of the environment, which test_sandbox gives to a program that needs no TensorFlow.
    """
    found = set()
    for key, made in runs:
        _, role, _, *options = key.split()
        found |= {role, *(each for each in options if each.startswith("--"))}
        found |= {run["outcome"] for run in made}
    return found
