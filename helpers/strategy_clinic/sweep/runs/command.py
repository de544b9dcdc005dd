"""The command `clinic sweep`: runs what the record does not hold, shows progress, and reports the differences."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...base.display import say
from ...base.errors import UserError
from ...base.files import write_whole
from .. import report
from ..differences import DIFFERENT, Result
from ..items import Cell, cells_of
from ..record import SweepRecord, nearest, new_record, news, read_record, write_record
from ..settled import has_a_size, unexplained
from .catalogue import ITEMS, chosen_cells
from .run import Tell, sweep, without_row


def record_sweep(versions: list[int], pattern: str, jobs: int, again: bool, json_file: str) -> int:
    """Runs the cells that the record of these versions does not hold, stores each row, and prints the report."""
    cells = require_cells(versions, pattern)
    new = new_record()
    stored = read_record(new.name)
    record = stored if stored and stored.versions == new.versions else new
    record.date = new.date
    record.keep_only(
        {cell.name for keras in (2, 3) for item in ITEMS for cell in cells_of(item, keras)}
    )
    left = [cell for cell in cells if again or not record.holds(cell)]
    if len(left) < len(cells):
        say(
            f"{len(cells) - len(left)} of {len(cells)} cells are recorded already; --again runs them anew"
        )
    if left:
        record.without_row = without_row([2, 3])
        with progress(len(left)) as tell:
            sweep(record, left, jobs, write_record, tell)
    write_record(record)
    print_report(record, [], json_file)
    return 1 if unexplained(record.to_settle) or record.without_row else 0


def check_sweep(
    versions: list[int], pattern: str, jobs: int, json_file: str, save: Path | None
) -> int:
    """Runs the cells and prints what differs from the record of these versions, or of the newest others."""
    cells, now = require_cells(versions, pattern), new_record()
    before = nearest(now)
    if before is None:
        raise UserError("Nothing has been recorded yet; run: clinic sweep")
    if before.versions != now.versions:
        say(
            f"compared with the record of TensorFlow {before.versions['tensorflow']}, Keras {before.versions['keras']}"
        )
    now.without_row = without_row(versions)
    path = save and save / f"sweep-tensorflow-{now.name}.json"
    with progress(len(cells)) as tell:
        sweep(
            now,
            cells,
            jobs,
            lambda record: write_record(record, path) if path else None,
            tell,
            before.cells,
        )
    found = news(before, now, has_a_size)
    print_report(now, found, json_file)
    print("\n".join(found or ["no news: every cell is as recorded"]))
    return 1 if found else 0


def require_cells(versions: list[int], pattern: str) -> list[Cell]:
    cells = chosen_cells(versions, pattern)
    if not cells:
        raise UserError(
            f"No cell fits --only {pattern!r}; a name is such as 'optimizer/Adam/clipnorm/fit/even/x2/keras3'."
        )
    return cells


def print_report(record: SweepRecord, found: list[str], json_file: str) -> None:
    data = json.dumps(report.as_data(record, found), indent=2)
    if json_file == "-":
        print(data)
        return
    if json_file:
        write_whole(Path(json_file), data + "\n")
    print(report.in_words(record))


@contextmanager
def progress(count: int) -> Iterator[Tell]:
    """Yields what reports each row on standard error: as a bar at a terminal, line by line elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr)
    if not console.is_terminal:
        done = 0

        def tell_line(row: list[Cell], results: dict[str, Result]) -> None:
            nonlocal done
            done += len(row)
            print(f"[{done}/{count}] {in_brief(row, results)}", file=sys.stderr, flush=True)

        yield tell_line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("cells", total=count)

        def tell_bar(row: list[Cell], results: dict[str, Result]) -> None:
            bar.update(task, advance=len(row), description=row[0].item.path)

        yield tell_bar


def in_brief(cells: list[Cell], results: dict[str, Result]) -> str:
    """Returns the rows of some cells, and how many differ."""
    rows = list(dict.fromkeys(cell.item.path for cell in cells))
    more = f" to {rows[-1]}" if len(rows) > 1 else ""
    different = sum(result.outcome in DIFFERENT for result in results.values())
    counts = f"{len(results)} cells" + (f", {different} differ" if different else "")
    return f"{rows[0]}{more}, Keras {cells[0].keras}: {counts}"
