"""Examinations in tests that are marked `replayed` are replayed from tests/recordings; what is out of date there is run.

EXAMINATIONS=record runs what is out of date, and records it. EXAMINATIONS=live runs all, as those marked `live` always do.
"""

import itertools
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import recordings
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.processes import python_process

FOLDER = Path(__file__).with_name("recordings")
MODES = "replay", "record", "live"
MODE = os.environ.get("EXAMINATIONS", "replay")
LAZY = "started when a program runs"  # in place of the path of a fork server


@pytest.fixture(autouse=True)
def examinations(request, monkeypatch):
    """Gives the examiner sandboxes that replay what is recorded for this test, one file for each examination."""
    assert MODE in MODES, f"EXAMINATIONS={MODE} is not known; valid: {', '.join(MODES)}"
    marked = {name: request.node.get_closest_marker(name) for name in ("replayed", "live")}
    if MODE == "live" or marked["live"] or not marked["replayed"]:
        yield
        return
    start, numbers = python_process.fork_server, itertools.count(1)
    monkeypatch.setattr(python_process, "fork_server", lambda *_: LAZY)

    def sandbox(program):
        path = path_of(request.node, next(numbers))
        if not recordings.stale(path, program):
            return recordings.replay(path, program)
        if program.fork_server == LAZY:
            program = replace(program, fork_server=start())
        return recordings.RecordingSandbox(program, path) if MODE == "record" else Sandbox(program)

    with recordings.sandboxes(sandbox):
        yield


def path_of(node: pytest.Item, number: int) -> Path:
    """Returns the file for an examination of a test, by whose name it can be found."""
    name = re.sub(r"\W+", "-", node.name).strip("-")[:80]
    suffix = "" if number == 1 else f"-{number}"
    return FOLDER / node.path.stem / f"{name}-{recordings.digest([node.name])[:4]}{suffix}.json.xz"
