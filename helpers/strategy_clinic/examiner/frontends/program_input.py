"""Programs that lie in no script: cells, a notebook, a pasted text. Their lines are told as their reader has them."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...processes import python_process
from ..cells import (
    Cell,
    Line,
    Listing,
    lines_of,
    listing_of,
    place_words,
    read_cells,
    require_python,
)
from ..recording import Examination, Finding
from ..report import serialize
from ..runs import plan
from ..runs.sandbox import Case

LINE = re.compile(r"\bline (\d+)\b")
MOST_NAMED = 3  # of what was left out, by name


def examine_listing(
    listing: Listing, program: Case, counts, restart: bool, tell
) -> tuple[Examination, Line | None]:
    """What was found, and the line at which the program failed in a way that is none of the modes."""
    with laid_out(listing, program) as script:
        found = plan.examine(script, counts, restart, tell)
        stuck = stuck_at(found, listing, str(script.brought))
        alone = files_of(found) <= {str(script.brought)}
        placed = [in_cells(each, listing, str(script.brought), alone) for each in found.findings]
    found.program, found.findings = listing.name, placed
    if found.failure and stuck:
        found.failure += f" ({place_words(stuck.cell, stuck.number)})"
    found.notes += left_out_words(listing)
    return found, stuck


@contextmanager
def laid_out(listing: Listing, program: Case) -> Iterator[Case]:
    """The program as a script, in a folder of its own; it runs in a copy of the reader's."""
    if program.python == sys.executable:
        require_python(listing)
    with empty_folder() as folder:
        script = folder / listing.file_name
        script.write_text(listing.text)
        arguments = program.words[1:]
        yield replace(program, words=(script.name, *arguments), brought=script)


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="clinic-") as place:
        yield Path(place).resolve()


def files_of(found: Examination) -> set[str]:
    """The files that lines of the program were seen in: its own modules count their lines for themselves."""
    facts = [fact for run in found.runs for fact in run.facts]
    return {frame[0] for fact in facts for frame in fact.get("at") or () if len(frame) > 1}


def in_cells(finding: Finding, listing: Listing, script: str, alone: bool) -> Finding:
    """The same finding, in the words of whoever has the cells."""
    if finding.file != script:
        return finding
    line = listing.line(finding.line)
    at = ([listing.file, line.number, *finding.at[0][2:]], *finding.at[1:])
    told = {"says": finding.says, "proof": finding.proof}
    if alone and not finding.proof.startswith("raised"):
        told = {name: LINE.sub(placed_in(listing), text) for name, text in told.items()}
    return replace(finding, at=at, cell=line.cell, code=line.code.strip(), **told)


def placed_in(listing: Listing):
    """What a line is called where the program comes from."""

    def placed(found: re.Match) -> str:
        line = listing.line(int(found[1]))
        return place_words(line.cell, line.number) if line.number else found[0]

    return placed


def stuck_at(found: Examination, listing: Listing, script: str) -> Line | None:
    lines = [listing.line(frame[1]) for frame in failed_frames(found) if frame[0] == script]
    return next(iter(lines), None)


def failed_frames(found: Examination) -> list:
    """The program's own lines in a failure that is none of the modes, the innermost first."""
    raised = next((run.last("raised") for run in found.runs if run.of("raised")), {})
    return [*raised.get("inside", ()), *raised.get("at", ())] if found.failure else []


def left_out_words(listing: Listing) -> list[str]:
    gone = listing.left_out
    if not gone:
        return []
    more = f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else ""
    return [f"magics and shell lines were left out: {', '.join(gone[:MOST_NAMED])}{more}"]


def examine_words_of(program: Case, counts, restart: bool, tell) -> Examination:
    """A script, a module or a notebook; a notebook runs in its own folder, as in Jupyter, and everything else in this one."""
    first = program.words[0] if program.words else ""
    if not first.endswith(".ipynb"):
        found = plan.examine(program, counts, restart, tell)
        frame = next(iter(failed_frames(found)), None)
        found.failure += f" ({serialize.shown_path(frame[0])}:{frame[1]})" if frame else ""
        return found
    path = program.folder / first
    listing = notebook_listing(path, first)
    here = replace(program, folder=path.parent)
    return examine_listing(listing, here, counts, restart, tell)[0]


# What a reader gives


def case_here(folder: Path, keras: int | None = None, limit: float = 600, steps: int = 0) -> Case:
    """A program from a notebook, with this kernel's Python; where the kernel was forked from a warm process, the program is."""
    served = python_process.running_fork_server()
    return Case((), folder, keras=keras, limit=limit, steps=steps, warm=served)


def notebook_listing(path: Path, name: str = "") -> Listing:
    return listing_of(name or str(path), read_cells(path), str(path))


def pasted_listing(text: str, name: str = "the program") -> Listing:
    """A text is one cell without a number. What was copied out of a page may stand further to the right."""
    from textwrap import dedent

    return listing_of(name, [Cell(0, dedent(text).lstrip("\n"))])


def script_listing(path: Path) -> Listing:
    """A script as it lies, for the page that shows it; it is run from its file."""
    lines = enumerate(lines_of(path.read_text(errors="replace")), 1)
    listed = tuple(Line(0, number, code) for number, code in lines)
    return Listing(path.name, listed, path=str(path))
