"""What a reader gives to be examined: a script, a notebook, the cells of a session, a pasted text."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from ...base.errors import UserError
from ...base.files import source_text
from ...processes import python_process
from ..cells import Cell, Line, Listing, lines_of, listing_of, read_cells
from ..runs.folder import PREFIX
from ..runs.program_spec import ProgramSpec


def with_notebook(program: ProgramSpec) -> ProgramSpec:
    """Returns a notebook as the program of its cells, run in its own folder, as in Jupyter; any other program as it is.

    Raises UserError if there is no program.
    """
    if program.arguments in ((), ("-m",)):
        raise UserError(
            "Which program? Such as: clinic examine train.py, or clinic examine -m package.train"
        )
    name = program.arguments[0]
    if not name.endswith(".ipynb"):
        return program
    path = program.folder / name
    return replace(program, folder=path.parent).with_listing(notebook_listing(path, name))


def program_here(
    folder: Path, keras: int | None, limit: float = 600, steps: int = 0
) -> ProgramSpec:
    """Returns a program without its text, for this kernel's Python; it is forked if the kernel was."""
    server = python_process.running_fork_server()
    return ProgramSpec((), folder, keras=keras, limit=limit, steps=steps, fork_server=server)


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=PREFIX) as place:
        yield Path(place).resolve()


def notebook_listing(path: Path, name: str) -> Listing:
    return listing_of(name, read_cells(path), str(path))


def pasted_listing(text: str) -> Listing:
    """Returns a text as one cell without a number. What was copied from a page may be indented."""
    return listing_of("the program", [Cell(0, dedent(text).lstrip("\n"))])


def script_listing(path: Path) -> Listing:
    """Returns the lines of a script for the card that shows it; it is run from its file."""
    lines = enumerate(lines_of(source_text(path)), 1)
    return Listing(
        path.name, tuple(Line(0, number, code) for number, code in lines), path=str(path)
    )
