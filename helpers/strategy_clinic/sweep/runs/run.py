"""Runs the cells that a record does not hold yet, some rows in one process, and stores them as they end."""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...processes import pool, python_process, request_reply
from ..differences import Outcome, Result
from ..items import Cell
from ..record import RecordedCell, SweepRecord

CHILD = f"{__package__}.child"
TOGETHER = 24  # cells of a process, whose import of Keras takes as long as two of them
LIMIT = 60  # seconds for a process, and
CELL_LIMIT = 20  # as many more for each cell
Tell = Callable[[list[Cell], dict[str, Result]], None]


Recorded = Mapping[str, RecordedCell]


def run_cells(
    cells: list[Cell], workers: int, known: Recorded
) -> Iterator[tuple[list[Cell], dict[str, Result]]]:
    """Yields some cells with their results as soon as they have been run; rounding is measured where it is not known."""
    with ThreadPoolExecutor(workers) as started:
        tasks = [(some, (some, known)) for some in together(cells)]
        for some, future in pool.as_ended(started, run_together, tasks):
            yield some, future.result()


def together(cells: list[Cell]) -> list[list[Cell]]:
    """Returns the cells in groups for a process: whole rows of one version of Keras."""
    groups: list[list[Cell]] = []
    for row in rows_of(cells):
        last = groups[-1] if groups else []
        if last and last[0].keras == row[0].keras and len(last) + len(row) <= TOGETHER:
            last += row
        else:
            groups.append(list(row))
    return groups


def rows_of(cells: list[Cell]) -> list[list[Cell]]:
    rows: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.item.path, cell.keras), []).append(cell)
    return list(rows.values())


def run_together(cells: list[Cell], known: Recorded | None = None) -> dict[str, Result]:
    """Runs cells in one process or, if that hangs or crashes, in smaller groups: only the cell at fault has no values."""
    roundings = {name: each.rounding for name, each in (known or {}).items()}
    names = {
        row[0].item.path: {cell.name: roundings.get(cell.name) for cell in row}
        for row in rows_of(cells)
    }
    limit = LIMIT + CELL_LIMIT * len(cells)
    try:
        answer = ask({"rows": names}, cells[0].keras, limit)
        return {
            name: Result(**line | {"outcome": Outcome(line["outcome"])})
            for name, line in answer.items()
        }
    except (TimeoutError, ChildProcessError) as error:
        if len(cells) > 1:
            rows = rows_of(cells)
            smaller = rows if len(rows) > 1 else [[cell] for cell in cells]
            return dict(itertools.chain(*(run_together(each, known).items() for each in smaller)))
        hangs = isinstance(error, TimeoutError)
        says = f"no end within {limit} seconds" if hangs else str(error)
        return {cells[0].name: Result(Outcome.HANGS if hangs else Outcome.CRASHES, [], says)}


def ask(question: dict[str, Any], keras: int, seconds: float) -> Any:
    """Returns the answer of a process; raises TimeoutError or ChildProcessError without one."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        answer, log = folder / "answer.json", folder / "log"
        server = python_process.fork_server()
        deadline = time.monotonic() + seconds
        asked = question | {"keras": keras, "answer": str(answer)}
        process = request_reply.ask(CHILD, asked, os.environ | {"TMPDIR": name}, log, server)
        pool.RUNNING.add(process)
        try:
            return request_reply.wait_for_answer(process, answer, deadline, log, "the cells")
        finally:
            pool.RUNNING.discard(process)
            request_reply.end(process)


def without_row(versions: list[int]) -> list[str]:
    """Returns the classes and arguments of the installed Keras that no row gives, such as 'Keras 3 layers.New'."""
    return [f"Keras {keras} {name}" for keras in versions for name in ask({}, keras, LIMIT)]


def sweep(
    record: SweepRecord,
    cells: list[Cell],
    workers: int,
    store: Callable[[SweepRecord], None],
    tell: Tell,
    known: Recorded | None = None,
) -> None:
    """Runs the cells, and adds and stores results as they come."""
    began, before = time.monotonic(), record.seconds
    for some, results in run_cells(cells, workers, known or {}):
        record.add(some, results)
        record.seconds = before + round(time.monotonic() - began)
        store(record)
        tell(some, results)
