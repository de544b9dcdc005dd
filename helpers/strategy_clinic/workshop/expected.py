"""What the solution of an exercise prints: as the notebook shows it, on other numbers of devices, and with other data.

Each mode has these results in `expected.json`. They are recorded, because participants have the package without the solutions.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError
from ..modes.failure_mode import FailureMode
from ..programs import run as programs
from ..records import store
from ..rendering import sources
from ..setups.parameters import Setup
from . import doubts, variations
from .doubts import Facts

NAME = "expected.json"
OTHER_COUNTS = (4, 1)  # of devices, where the exercise's own strategy is `mirrored`
RECORDER = "python tools/record_expected.py"


@dataclass(frozen=True)
class ExpectedRun:
    """What is right on a number of devices, with the data of the exercise or with a variation of them."""

    devices: int
    variation: str
    prints: str


@dataclass(frozen=True)
class ExpectedRuns:
    """The first of the runs is that of the notebook. `data` are the expressions that a variation replaces."""

    setup: Setup
    runs: tuple[ExpectedRun, ...]
    data: tuple[str, ...]
    solution: Facts
    inputs: str

    @property
    def constant(self) -> bool:
        return len({right.prints for right in self.runs}) == 1

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def path_of(mode: str) -> Path:
    return files.mode_folder(mode) / NAME


def expected_of(mode: str) -> ExpectedRuns:
    """Returns what was recorded of a mode's solution; raises UserError if nothing was."""
    path = path_of(mode)
    if not path.is_file():
        raise UserError(
            f"{mode} has no {NAME}, so nothing says what is right; run: {RECORDER} {mode}"
        )
    return parsed(path.read_text())


@functools.cache
def parsed(text: str) -> ExpectedRuns:
    stored: dict[str, Any] = json.loads(text)
    stored["setup"] = Setup(**stored["setup"])
    stored["runs"] = tuple(ExpectedRun(**each) for each in stored["runs"])
    stored["data"] = tuple(stored["data"])
    stored["solution"] = Facts(**stored["solution"])
    return ExpectedRuns(**stored)


def inputs_of(mode: str) -> str:
    """Returns a hash of all that the runs of a mode's solution follow from, but for TensorFlow."""
    texts = [files.program_text(mode, subject) for subject in ("exercise", "solution")]
    data = variations.data_of(texts[0])
    tables = [variations.VARIATIONS, data, variations.variations_of(data), OTHER_COUNTS]
    return hashlib.sha256("\0".join([*texts, repr(tables)]).encode()).hexdigest()[:16]


def facts_of_solution(mode: str) -> Facts:
    names = doubts.printed_names(ast.parse(files.program_text(mode, "exercise")))
    return doubts.facts_of(ast.parse(files.program_text(mode, "solution")), names)


def is_current(mode: str) -> bool:
    """Returns whether what is recorded of a mode belongs to its programs as they are."""
    if not path_of(mode).is_file():
        return False
    stored = expected_of(mode)
    return stored.inputs == inputs_of(mode) and stored.solution == facts_of_solution(mode)


def text_for(program: str, right: ExpectedRun, data: tuple[str, ...]) -> str:
    """Returns a program with the data of a run."""
    return variations.varied(program, data, right.variation) if right.variation else program


# Recorded


def recorded(mode: FailureMode) -> ExpectedRuns:
    """Runs the solution of a mode, and returns what it prints under each setup under which it works.

    The runs are not made again if they belong to the programs as they are.
    """
    inputs, facts = inputs_of(mode.id), facts_of_solution(mode.id)
    if path_of(mode.id).is_file() and (stored := expected_of(mode.id)).inputs == inputs:
        return replace(stored, solution=facts)
    page = sources.notebook_of(files.mode_pages()[mode.id])
    own = store.own_setup(page, store.parameters_of(page)["keras"])
    task, solution = (files.program_text(mode.id, each) for each in ("exercise", "solution"))
    data = tuple(each for each in variations.data_of(task) if each in variations.data_of(solution))
    runs = tuple(right_runs(solution, own, data, mode.exercise_prints))
    return ExpectedRuns(own, runs, data, facts, inputs)


def right_runs(
    solution: str, own: Setup, data: tuple[str, ...], prints: str
) -> Iterator[ExpectedRun]:
    """Yields what the solution prints in the notebook, on other numbers of devices, and on the first of these with other data."""
    yield ExpectedRun(own.devices, "", prints)
    counts = OTHER_COUNTS if own.strategy == "mirrored" else ()
    wanted = [ExpectedRun(count, "", "") for count in counts if count != own.devices]
    plain = [found for each in wanted if (found := run_right(solution, own, each, data))]
    yield from plain
    largest = max([own.devices, *(right.devices for right in plain)])
    for devices in dict.fromkeys((largest, own.devices)):
        for variation in variations.variations_of(data):
            found = run_right(solution, own, ExpectedRun(devices, variation, ""), data)
            if found and found.prints != prints:
                yield found
                return


def run_right(
    solution: str, own: Setup, right: ExpectedRun, data: tuple[str, ...]
) -> ExpectedRun | None:
    """Returns a run with what the solution prints, or None if it raises or does not always print the same."""
    text = text_for(solution, right, data)
    jobs = [programs.Job(text, own.but(devices=right.devices))] * 2
    runs = programs.run_programs(jobs)
    printed = {run.printed.strip() for run in runs}
    if len(printed) > 1 or any(run.error for run in runs):
        return None
    return ExpectedRun(right.devices, right.variation, printed.pop())
