"""Measures a mode by running its notebook with one more cell, which reports its verdicts as data."""

import ast
import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from ..base.display import report, reported
from ..base.errors import UserError
from ..modes.failure_mode import FailureMode
from ..processes import notebook_job, pool
from ..programs.verdicts import OUTCOMES, Verdict
from ..rendering.mode_notebooks import ModeNotebook
from ..rendering.render import stable_outputs
from ..rendering.sources import is_program, tags
from ..setups.parameters import Setup
from . import progress
from .store import Measured, RecordedVerdict, grid_of, own_setup

MODE_LIMIT = 900  # seconds for all setups of one mode
PAGES = 3  # the version of Keras that the stored pages are run on
FOR_READERS = {"table", "exercise", "solution", "panel"}


def measure(wanted: ModeNotebook, setups: list[Setup], ran: Path | None = None) -> Measured:
    """Runs a mode under these setups, together or, if that hangs or crashes, one by one.

    A byte in the file `ran` stands for each setup that has been run. Raises UserError if the notebook fails.
    """
    keras = setups[0].keras
    ended = notebook_job.run_notebook(
        nbformat.writes(with_grid(wanted.notebook, setups, ran)), {"keras": keras}, MODE_LIMIT
    )
    if ended["end"] == "failed":
        raise UserError(f"{wanted.mode.name} under Keras {keras}: {ended['failure']}")
    if ended["end"] == "finished":
        reports = reported(nbformat.reads(ended["notebook"], as_version=4))
        grid = next(each["grid"] for each in reports if "grid" in each)
        return Measured([RecordedVerdict(**line) for line in grid])
    if len(setups) == 1:
        return Measured([unfinished(wanted, setups[0], ended)])
    parts = [measure(wanted, [setup], ran) for setup in setups]
    return Measured([verdict for part in parts for verdict in part.verdicts])


def measure_grid(wanted: ModeNotebook, keras: int, ran: Path | None = None) -> Measured:
    """Measures a mode under every setup that matters to it."""
    return measure(wanted, setups_of(wanted, keras), ran)


def setups_of(wanted: ModeNotebook, keras: int) -> list[Setup]:
    return grid_of(wanted.mode, own_setup(wanted.notebook, keras))


def measure_own(wanted: ModeNotebook, keras: int, ran: Path | None = None) -> Measured:
    """Measures a mode in its notebook's own setup, and whether the notebook still shows what is stored.

    A cell that fails, as it may on another version, does not stop the others.
    """
    setup = own_setup(wanted.notebook, keras)
    notebook = with_grid(wanted.notebook, [setup], ran)
    for cell in notebook.cells:
        cell.metadata["tags"] = [*tags(cell), "raises-exception"]
        if keras != PAGES:  # what only a reader needs takes most of the time
            cell.source = without_steps_for_readers(cell)
    ended = notebook_job.run_notebook(nbformat.writes(notebook), {"keras": keras}, MODE_LIMIT)
    executed = nbformat.reads(ended["notebook"], as_version=4)
    reports = reported(executed)
    grid = [RecordedVerdict(**line) for each in reports for line in each.get("grid", [])]
    own = grid[0] if grid else unfinished(wanted, setup, ended)
    same = compared_text(wanted.notebook).items() <= compared_text(executed).items()
    page = "as stored" if same or keras != PAGES else "differs"
    return Measured([own], page)


def without_steps_for_readers(cell: NotebookNode) -> str:
    """Returns the code of a cell without the table, the panel and the exercise; what it defines may be used below."""
    source: str = cell.source
    found = FOR_READERS & set(tags(cell))
    if not found or is_program(cell):
        return "pass" if found else source
    kept = [
        statement
        for statement in ast.parse(source).body
        if not ast.unparse(statement).startswith(("session.table(", "session.panel("))
    ]
    return "\n".join(map(ast.unparse, kept)) or "pass"


def unfinished(wanted: ModeNotebook, setup: Setup, ended: dict[str, str]) -> RecordedVerdict:
    outcome = ended["end"] if ended["end"] in OUTCOMES else "not reached"
    return RecordedVerdict(
        wanted.mode.id,
        **setup.as_dict(),
        broken=outcome,
        fixed="not reached",
        evidence="executed",
        agrees=False,
        says=ended["failure"],
    )


def compared_text(notebook: NotebookNode) -> dict[str, str]:
    """Returns by cell what nbval compares: the text of all outputs but those of excused cells."""
    return {
        cell.id: "".join(
            output.get("text", "") + output.get("data", {}).get("text/plain", "")
            for output in stable_outputs(cell.outputs)
        )
        for cell in notebook.cells
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell) and cell.outputs
    }


# The added cell


def with_cell(notebook: NotebookNode, code: str) -> NotebookNode:
    longer: NotebookNode = copy.deepcopy(notebook)
    longer.cells.append(nbformat.v4.new_code_cell(code))
    return longer


def with_grid(notebook: NotebookNode, setups: list[Setup], ran: Path | None = None) -> NotebookNode:
    """Returns the notebook with a cell that runs both programs under every setup that it has not run yet."""
    wanted, file = [setup.as_dict() for setup in setups], str(ran) if ran else ""
    code = "from strategy_clinic.records.measure import report_grid\n\n"
    return with_cell(notebook, f"{code}report_grid(session, {wanted!r}, {file!r})")


def report_grid(session: Any, wanted: list[dict[str, Any]], ran: str = "") -> None:
    """Reports a line for each setup, with the fields of a RecordedVerdict."""
    lines = [
        recorded_verdict(session.mode, *session.run(session.both(), [setup]))
        for setup in each_noted([Setup(**values) for values in wanted], ran)
    ]
    report(f"{session.mode.name} under {len(lines)} setups", grid=[asdict(line) for line in lines])


def each_noted(setups: list[Setup], ran: str) -> Iterator[Setup]:
    """Yields each setup, and adds a byte to a file, if there is one, when it has been run."""
    for setup in setups:
        yield setup
        if ran:
            with open(ran, "ab") as file:
                file.write(b".")


def recorded_verdict(mode: FailureMode, failure: Verdict, repair: Verdict) -> RecordedVerdict:
    return RecordedVerdict(
        mode.id,
        **failure.setup.as_dict(),
        broken=failure.outcome,
        fixed=repair.outcome,
        evidence=failure.evidence,
        agrees=mode.agrees(failure) and mode.agrees(repair),
        says=failure.says if failure.outcome != "works" else "",
    )


# Several modes


def measure_all(
    chosen: list[ModeNotebook],
    keras: int,
    workers: int,
    tell: Callable[[str], None],
    how: Callable[[ModeNotebook, int, Path], Measured] = measure_grid,
) -> Iterator[tuple[ModeNotebook, Callable[[], Measured]]]:
    """Yields each mode as soon as it is measured, with a function that returns the result or raises its error."""
    setups = counts_of_setups(chosen, keras, how)
    with progress.told(setups, workers, tell) as far, ThreadPoolExecutor(workers) as started:
        tasks = [(each, (each, keras, far.file(each.mode.id))) for each in chosen]
        for number, (each, future) in enumerate(pool.as_ended(started, how, tasks), 1):
            far.ended.add(each.mode.id)
            failed = future.exception()
            words = failed or counts_of(future.result().verdicts)
            left = "" if number == len(tasks) else f"; {progress.in_words(far.seconds_left())} left"
            tell(f"[{number}/{len(tasks)}] {each.mode.id}: {words}{left}")
            yield each, future.result


def counts_of_setups(
    chosen: list[ModeNotebook], keras: int, how: Callable[..., Measured]
) -> dict[str, int]:
    """Returns under how many setups each mode is measured."""
    return {
        each.mode.id: len(setups_of(each, keras)) if how is measure_grid else 1 for each in chosen
    }


def counts_of(measured: list[RecordedVerdict]) -> str:
    counts = {word: sum(verdict.broken == word for verdict in measured) for word in OUTCOMES}
    words = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"{len(measured)} setups ({words})"
