"""Grades exercises: each is run in the project's own notebook and judged by what its last step reports.

Of a participant's notebook only the cells of the exercise are used.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from ..base import files
from ..base.display import reported, say
from ..base.errors import UserError
from ..base.files import write_whole
from ..modes import registry
from ..processes import notebook_job, pool, python_process
from ..records import junit
from ..rendering import sources
from . import exercises

EXERCISE_LIMIT = 120  # seconds for one exercise
LARGEST = 50_000_000  # bytes of a notebook
LONGEST_LINE = 200  # characters of what an exercise says
RESULTS = ("green", "red", "not run")
GUARDED_START = "import sys\n\nsys.path.insert(0, {root!r})\nfrom strategy_clinic.workshop import guard\n\nguard.begin()"
STEP = "session.exercise(attempt)"


@dataclass(frozen=True)
class Grade:
    """The result of one exercise of one participant; `network` says how it was kept from the network while it ran."""

    notebook: str
    result: str
    says: str
    network: str = ""

    def __str__(self) -> str:
        return f"{self.notebook}: {self.result}: {self.says}"


def grade(
    folder: Path,
    workers: int = 1,
    seconds: float = EXERCISE_LIMIT,
    write: Callable[[list[Grade]], None] = lambda _: None,
    tell: Callable[[str], None] = say,
) -> list[Grade]:
    """Grades every notebook; `write` is called with all grades so far whenever there is one more."""
    prepared = {name: prepare(name, path) for name, path in notebooks_in(folder)}
    unrun = [each for each in prepared.values() if isinstance(each, Grade)]
    texts = {name: each for name, each in prepared.items() if isinstance(each, str)}
    if not unrun and not texts:
        raise UserError(f"No notebook in {str(folder)!r} has an exercise of this collection.")
    grades: list[Grade] = []
    began, total = time.monotonic(), len(unrun) + len(texts)
    for each in chain(unrun, run(texts, workers, seconds)):
        grades.append(each)
        write(grades)
        done, remaining = len(grades) - len(unrun), ""
        if 0 < done < len(texts):
            pace = (time.monotonic() - began) / done
            remaining = f" (about {pace * (len(texts) - done):.0f} s left)"
        tell(f"[{len(grades)}/{total}] {each}{remaining}")
    counts = [f"{sum(each.result == word for each in grades)} {word}" for word in RESULTS]
    networks = sorted({f"; network: {each.network}" for each in grades if each.network})
    tell(", ".join(counts) + "".join(networks))
    return grades


def write_grades(path: Path, grades: list[Grade]) -> None:
    write_whole(path, json.dumps([asdict(each) for each in grades], indent=1))


def write_junit(path: Path, grades: list[Grade]) -> None:
    """Writes red as a failure, and what was not run as an error."""
    kinds = {"red": "failure", "not run": "error"}
    cases = []
    for each in grades:
        reasons = {kinds[each.result]: each.says} if each.result in kinds else {}
        cases.append(junit.case("exercises", each.notebook, **reasons))
    junit.write_suites(path, [junit.suite("exercises", cases)])


# Before anything is run


def notebooks_in(folder: Path) -> list[tuple[str, Path]]:
    """Returns every notebook in a folder and below it with its name there, but for hidden ones such as Jupyter's."""
    if folder.is_file():
        return [(folder.name, folder)]
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*.ipynb"))]
    names = [name for name in names if not any(part.startswith(".") for part in name.parts)]
    if not names:
        raise UserError(f"There is no notebook in {str(folder)!r}; give a participant's folder.")
    return [(in_one_line(str(name)), folder / name) for name in names]


def prepare(name: str, path: Path) -> str | Grade | None:
    """Returns the notebook to run, or the grade of one that needs no run; None for a notebook of no mode."""
    try:
        mode = mode_of(path)
        return assembled(mode, path) if mode else None
    except exercises.Unchanged as reason:
        return Grade(name, "red", str(reason))
    except UserError as reason:
        return Grade(name, "not run", in_one_line(str(reason)))


def mode_of(path: Path) -> str:
    """Returns the id in a notebook's name, or else that of the mode that it opens; nothing if there is none."""
    in_name = re.search(r"fm\d+", path.stem)
    if in_name or not readable(path):
        return in_name.group() if in_name else ""
    opened = re.search(r'clinic\.open\(\\"(fm\d+)\\"', path.read_text(errors="replace"))
    return opened.group(1) if opened else ""


def readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= LARGEST


def assembled(mode: str, path: Path) -> str:
    """Returns a notebook of four cells: the guard, the project's code, the participant's, and the step that judges it."""
    own = {each.id: files.ROOT / each.notebook for each in registry.modes()}
    if mode not in own:
        raise UserError(f"there is no mode {mode}")
    if not readable(path):
        raise UserError(f"it is no file, or has more than {LARGEST // 1_000_000} MB")
    participant = sources.read_notebook(path)
    project, attempt = exercises.both_parts(sources.stored_notebook(own[mode]), participant)
    guard = GUARDED_START.format(root=str(files.PACKAGE.parent))
    cells = [new_code_cell(text) for text in (guard, project, attempt, STEP)]
    text: str = nbformat.writes(new_notebook(cells=cells, metadata=sources.KERNEL))
    return text


# Run and judged


def run(texts: dict[str, str], workers: int, seconds: float) -> Iterator[Grade]:
    """Runs the notebooks, several at once if asked, and yields each grade as soon as there is one."""
    environment = python_process.isolated(os.environ)
    tasks: list[tuple[str, tuple[Any, ...]]] = [
        (name, (text, {}, seconds, environment)) for name, text in texts.items()
    ]
    with ThreadPoolExecutor(workers) as started:
        for name, future in pool.as_ended(started, notebook_job.run_notebook, tasks):
            yield judged(name, future.result())


def judged(name: str, ended: dict[str, str]) -> Grade:
    """Returns green only for the one report of the last cell, in a run that was finished."""
    executed = nbformat.reads(ended["notebook"], as_version=4)
    network = next((each["network"] for each in reported(executed) if "network" in each), "")
    if ended["end"] != "finished":
        result = (
            "red" if network else "not run"
        )  # without a guard nothing of the participant has run
        says = re.sub(r"^cell \S+", "it", ended["failure"])
        return Grade(name, result, in_one_line(says), network)
    reports = reported(new_notebook(cells=executed.cells[-1:]))
    if not reports:
        return Grade(name, "red", "it ends the run before its verdict", network)
    if len(reports) != 1 or reports[0].get("step") != "exercise":
        return Grade(name, "not run", "it shows verdicts of its own", network)
    verdict = reports[0]["verdict"]
    result = "not run" if verdict["outcome"] == "unavailable" else reports[0]["colour"]
    return Grade(name, result, in_one_line(verdict["says"] or "it returns no Proof"), network)


def in_one_line(words: str) -> str:
    """Returns a participant's words without control characters, short enough for one line of a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
