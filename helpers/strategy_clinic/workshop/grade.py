"""Grades the exercises of a class: each is run in processes without a network, and judged here by what it prints.

Of a participant's notebook only the cell of the exercise is used.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..base import files
from ..base.display import say
from ..base.errors import UserError, choose
from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..processes import pool
from ..rendering import sources
from . import exercises, scores
from .exercises import Attempt
from .expected import ExpectedRuns, expected_of
from .judge import Judgement, judge
from .remaining import Remaining
from .scores import Grade

EXERCISE_LIMIT = 120  # seconds for one run of an exercise
LARGEST = 50_000_000  # bytes of a notebook
LONGEST_LINE = 500  # characters of what an exercise says


@dataclass(frozen=True)
class Task:
    """A participant's program, and what it must print."""

    mode: FailureMode
    attempt: Attempt
    expected: ExpectedRuns


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
    remaining, total = Remaining(len(tasks), workers), len(unrun) + len(tasks)
    for each in chain(unrun, run(tasks, workers, seconds)):
        grades.append(each)
        write(grades)
        left = remaining.after(len(grades) - len(unrun))
        tell(f"[{len(grades)}/{total}] {each}{left}")
    tell(scores.as_text(grades))
    tell(scores.summary(grades))
    return grades


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
    mode = mode_of(path)
    try:
        return task_of(mode, path) if mode else None
    except UserError as reason:
        return grade_of(name, mode, without_run(reason))


def without_run(reason: UserError) -> Judgement:
    """Returns the judgement on what is not run: red for an exercise as it was handed out, or that Python cannot read."""
    is_red = isinstance(reason, exercises.Unchanged | exercises.NotPython)
    return Judgement("red" if is_red else "not run", str(reason))


def grade_of(name: str, mode: str, found: Judgement) -> Grade:
    participant = scores.participant_of(name, mode)
    says = in_one_line(found.says)
    return Grade(name, participant, mode, found.result, says, found.network, found.files)


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
    """Returns a participant's program, with what is right under the setup of the project's own notebook and others."""
    choose("mode", identity, files.mode_pages())
    if not readable(path):
        raise UserError(f"it is no file, or has more than {LARGEST // 1_000_000} MB")
    text = files.program_text(identity, "exercise")
    attempt = exercises.attempt_in(sources.read_notebook(path), text)
    return Task(registry.mode_by_id(identity), attempt, expected_of(identity))


# Run and judged


def run(tasks: dict[str, Task], workers: int, seconds: float) -> Iterator[Grade]:
    """Judges the attempts, several at once if asked, and yields each grade as soon as there is one."""
    jobs = [
        (name, (task.mode, task.attempt, task.expected, seconds)) for name, task in tasks.items()
    ]
    with ThreadPoolExecutor(workers) as started:
        for name, future in pool.as_ended(started, judge, jobs):
            yield grade_of(name, tasks[name].mode.id, future.result())


def grade_program(mode: FailureMode, text: str) -> Grade:
    """Grades the text of one exercise, as it would be graded in a notebook that was handed in."""
    try:
        attempt = exercises.attempt_of(text, files.program_text(mode.id, "exercise"))
    except UserError as reason:
        return grade_of(mode.id, mode.id, without_run(reason))
    return grade_of(mode.id, mode.id, judge(mode, attempt, expected_of(mode.id), EXERCISE_LIMIT))


def in_one_line(words: str) -> str:
    """Returns a participant's words without control characters, short enough for one line of a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
