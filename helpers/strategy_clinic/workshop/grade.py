"""Grades exercises: each program is run in a process without a network, and judged here by what it prints.

Of a participant's notebook only the cell of the exercise is used.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from ..base import files
from ..base.display import say
from ..base.errors import Unavailable, UserError, choose
from ..base.files import write_whole
from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..processes import pool
from ..programs.error_text import last_line
from ..programs.run import Job, Run, run_program
from ..programs.run import judged as judged_run
from ..records import junit, store
from ..rendering import sources
from ..setups.parameters import Setup
from . import exercises

EXERCISE_LIMIT = 120  # seconds for one exercise
LARGEST = 50_000_000  # bytes of a notebook
LONGEST_LINE = 200  # characters of what an exercise says
RESULTS = ("green", "red", "not run")


@dataclass(frozen=True)
class Grade:
    """The result of one exercise of one participant; `network` says how it was kept from the network while it ran."""

    notebook: str
    result: str
    says: str
    network: str = ""

    def __str__(self) -> str:
        return f"{self.notebook}: {self.result}: {self.says}"


@dataclass(frozen=True)
class Task:
    """A participant's program, and what it must print."""

    job: Job
    right: str


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
    tasks = {name: each for name, each in prepared.items() if isinstance(each, Task)}
    if not unrun and not tasks:
        raise UserError(f"No notebook in {str(folder)!r} has an exercise of this collection.")
    grades: list[Grade] = []
    began, total = time.monotonic(), len(unrun) + len(tasks)
    for each in chain(unrun, run(tasks, workers, seconds)):
        grades.append(each)
        write(grades)
        done, remaining = len(grades) - len(unrun), ""
        if 0 < done < len(tasks):
            pace = (time.monotonic() - began) / done
            remaining = f" (about {pace * (len(tasks) - done):.0f} s left)"
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


def prepare(name: str, path: Path) -> Task | Grade | None:
    """Returns the program to run, or the grade of a notebook that needs no run; None for a notebook of no mode."""
    try:
        mode = mode_of(path)
        return task_of(mode, path) if mode else None
    except UserError as reason:
        return grade_without_run(name, reason)


def grade_without_run(name: str, reason: UserError) -> Grade:
    """Returns the grade of what is not run: red for an exercise as it was handed out."""
    result = "red" if isinstance(reason, exercises.Unchanged) else "not run"
    return Grade(name, result, in_one_line(str(reason)))


def mode_of(path: Path) -> str:
    """Returns the id in a notebook's name, or else that of the mode that it opens; nothing if there is none."""
    in_name = re.search(r"fm\d+", path.stem)
    if in_name or not readable(path):
        return in_name.group() if in_name else ""
    opened = re.search(r'clinic\.open\(\\"(fm\d+)\\"', path.read_text(errors="replace"))
    return opened.group(1) if opened else ""


def readable(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= LARGEST


def task_of(identity: str, path: Path) -> Task:
    """Returns a participant's program under the setup of the project's own notebook."""
    choose("mode", identity, files.mode_pages())
    if not readable(path):
        raise UserError(f"it is no file, or has more than {LARGEST // 1_000_000} MB")
    mode = registry.mode_by_id(identity)
    text = exercises.program_of(
        sources.read_notebook(path), files.program_text(identity, "exercise")
    )
    own = sources.stored_notebook(files.ROOT / mode.notebook)
    setup = store.own_setup(own, store.parameters_of(own)["keras"])
    return Task(Job(text, setup, isolated=True), mode.exercise_prints)


# Run and judged


def run(tasks: dict[str, Task], workers: int, seconds: float) -> Iterator[Grade]:
    """Runs the programs, several at once if asked, and yields each grade as soon as there is one."""
    jobs = [(name, (replace(task.job, seconds=seconds),)) for name, task in tasks.items()]
    with ThreadPoolExecutor(workers) as started:
        for name, future in pool.as_ended(started, run_program, jobs):
            yield judged(name, future.result(), tasks[name].right)


def judged(name: str, run: Run, right: str) -> Grade:
    """Returns green only for a program that ends, and prints what is right."""
    error = judged_run(run, right).error
    if error is None:
        return Grade(name, "green", in_one_line(run.printed.strip()), run.network)
    if isinstance(error, TimeoutError | ChildProcessError):
        return Grade(name, "red", in_one_line(str(error)), run.network)
    result = "not run" if isinstance(error, Unavailable) else "red"
    kind = f"{type(error).__name__}: " if run.error else ""
    return Grade(name, result, in_one_line(f"{kind}{last_line(error)}"), run.network)


def grade_program(mode: FailureMode, setup: Setup, text: str) -> Grade:
    """Grades the text of one exercise under a setup, as it would be graded in a notebook that was handed in."""
    task = files.program_text(mode.id, "exercise")
    try:
        program = exercises.checked(text, task)
    except UserError as reason:
        return grade_without_run(mode.id, reason)
    run = run_program(Job(program, setup, isolated=True, seconds=EXERCISE_LIMIT))
    return judged(mode.id, run, mode.exercise_prints)


def in_one_line(words: str) -> str:
    """Returns a participant's words without control characters, short enough for one line of a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
