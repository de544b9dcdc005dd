"""Grading: each exercise of a participant, run in the project's own notebook and judged by what its step reports.

Of a participant's notebook nothing counts but the cells of the exercise. What green means is the project's to say.
"""

import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

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
    """One exercise of one participant; `network` says what kept it from any, where it was run."""

    notebook: str
    result: str
    says: str
    network: str = ""

    def __str__(self):
        return f"{self.notebook}: {self.result}: {self.says}"


def grade(folder: Path, workers=1, seconds=EXERCISE_LIMIT, keep=None, tell=say) -> list[Grade]:
    """Grades every notebook; `keep` is given all grades so far whenever there is one more."""
    own = {mode.id: files.ROOT / mode.notebook for mode in registry.modes()}
    ready = {name: prepared(name, path, own) for name, path in found(folder)}
    known = [each for each in ready.values() if isinstance(each, Grade)]
    texts = {name: each for name, each in ready.items() if isinstance(each, str)}
    if not known and not texts:
        raise UserError(f"No notebook in {str(folder)!r} has an exercise of this collection.")
    grades, began = [], time.monotonic()
    for each in chain(known, executed(texts, workers, seconds)):
        grades.append(each)
        if keep:
            keep(grades)
        tell(f"[{len(grades)}/{len(known) + len(texts)}] {each}{left(grades, known, texts, began)}")
    tell(totals(grades))
    return grades


def left(grades: list, known: list, texts: dict, began: float) -> str:
    """How long the rest will take, once something has been run to judge by."""
    done = len(grades) - len(known)
    if not 0 < done < len(texts):
        return ""
    return f" (about {(time.monotonic() - began) / done * (len(texts) - done):.0f} s left)"


def totals(grades: list[Grade]) -> str:
    counts = [f"{sum(each.result == word for each in grades)} {word}" for word in RESULTS]
    networks = sorted({each.network for each in grades if each.network})
    return ", ".join(counts) + "".join(f"; network: {word}" for word in networks)


def write_grades(path: Path, grades: list[Grade]):
    write_whole(path, json.dumps([asdict(each) for each in grades], indent=1))


def write_junit(path: Path, grades: list[Grade]):
    """Red is a failure, and what was not run is an error."""
    cases = [junit.case("exercises", each.notebook, **not_green(each)) for each in grades]
    junit.write_suites(path, [junit.suite("exercises", cases)])


def not_green(grade: Grade) -> dict[str, str]:
    kinds = {"red": "failure", "not run": "error"}
    return {kinds[grade.result]: grade.says} if grade.result in kinds else {}


# Before anything is run


def found(folder: Path) -> list[tuple[str, Path]]:
    """Every notebook in a folder and below it, and its name there; what Jupyter keeps for itself is left out."""
    if folder.is_file():
        return [(folder.name, folder)]
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.ipynb"))]
    kept = [name for name in names if not any(part.startswith(".") for part in Path(name).parts)]
    if not kept:
        raise UserError(f"There is no notebook in {str(folder)!r}; give a participant's folder.")
    return [(in_one_line(name), folder / name) for name in kept]


def prepared(name: str, path: Path, own: dict[str, Path]) -> str | Grade | None:
    """The notebook to run, or the grade that needs no run; None for what belongs to no mode."""
    try:
        identity = mode_of(path)
        return identity and assembled(*own_and_theirs(path, identity, own))
    except exercises.Unchanged as reason:
        return Grade(name, "red", str(reason))
    except UserError as reason:
        return Grade(name, "not run", in_one_line(str(reason)))


def mode_of(path: Path) -> str | None:
    """The id in a notebook's name, or else that of the mode that it opens."""
    in_name = re.search(r"fm\d+", path.stem)
    if in_name or not readable(path):
        return in_name and in_name.group()
    in_text = re.search(r'clinic\.open\(\\"(fm\d+)\\"', path.read_text(errors="replace"))
    return in_text and in_text.group(1)


def readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= LARGEST


def own_and_theirs(path: Path, identity: str, own: dict[str, Path]) -> tuple[str, str]:
    if identity not in own:
        raise UserError(f"there is no mode {identity}")
    if not readable(path):
        raise UserError(f"it is no file, or has more than {LARGEST // 1_000_000} MB")
    participant = sources.read_notebook(path)
    return exercises.both_parts(nbformat.read(own[identity], as_version=4), participant)


def assembled(project: str, attempt: str) -> str:
    """Four cells: out of reach, what the project gives, what the participant wrote, and the step that judges it."""
    texts = [GUARDED_START.format(root=str(files.PACKAGE.parent)), project, attempt, STEP]
    cells = [new_code_cell(text) for text in texts]
    return nbformat.writes(new_notebook(cells=cells, metadata=sources.KERNEL))


# Run and judged


def executed(texts: dict[str, str], workers: int, seconds: float):
    """Runs the notebooks, several at once if asked, and gives each grade as soon as there is one."""
    environment = python_process.isolated(os.environ)
    wanted = [(name, (text, {}, seconds, environment)) for name, text in texts.items()]
    with ThreadPoolExecutor(workers) as started:
        for name, future in pool.as_ended(started, notebook_job.run_notebook, wanted):
            yield judged(name, future.result())


def judged(name: str, ended: dict) -> Grade:
    """Green by nothing but the one report of the last cell, in a run that came to its end."""
    ran = nbformat.reads(ended["notebook"], as_version=4)
    network = next((each["network"] for each in reported(ran) if "network" in each), "")
    if ended["end"] != "finished":
        result = "red" if network else "not run"  # which is nothing that the participant has done
        return Grade(
            name, result, in_one_line(re.sub(r"^cell \S+", "it", ended["failure"])), network
        )
    found = reported(new_notebook(cells=ran.cells[-1:]))
    if not found:
        return Grade(name, "red", "it ends the run before its verdict", network)
    if len(found) != 1 or found[0].get("step") != "exercise":
        return Grade(name, "not run", "it shows verdicts of its own", network)
    verdict = found[0]["verdict"]
    result = "not run" if verdict["outcome"] == "unavailable" else found[0]["colour"]
    return Grade(name, result, in_one_line(verdict["says"] or "it returns no Proof"), network)


def in_one_line(words: str) -> str:
    """A participant's words, fit for one line of a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
