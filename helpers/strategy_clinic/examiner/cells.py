"""Code cells as one program: what in them is Python, and which cell and line each line of the program comes from."""

import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from .findings import Location

# Cell magics below which stands Python that is run here all the same.
AROUND_PYTHON = ("capture", "examine", "prun", "time", "timeit")
# Line magics without a purpose outside of a notebook: nothing is said of them.
NEEDLESS = re.compile(r"%(autoreload|config|load_ext|matplotlib|reload_ext|unload_ext)\b")
FUTURE = re.compile(r"from __future__ import (\w+(?:, *\w+)*)\s*$")
# A kernel has `display`, and a program has not. What a program begins with stands in its first line, before all cells.
BEGIN = "display = print"
MOST_LEFT_OUT = 3  # magics and shell lines that a note quotes


@dataclass(frozen=True)
class Cell:
    """A cell, by the number that Jupyter shows beside it or by its place in the file."""

    number: int  # 0: not a cell, but a text
    text: str


@dataclass(frozen=True)
class Line:
    cell: int
    number: int
    code: str

    @property
    def location(self) -> str:
        return location_in(self.cell, self.number)


@dataclass(frozen=True)
class Listing:
    """A program line by line, with the cell and number that each line has for its reader."""

    name: str
    lines: tuple[Line, ...]
    left_out: tuple[str, ...] = ()
    text: str = ""
    path: str = ""  # of the file that the cells were read from

    @property
    def file_name(self) -> str:
        """The name of a script with this text."""
        return f"cells_of_{re.sub(r'[^A-Za-z0-9_]+', '_', Path(self.name).stem)}.py"

    @property
    def file(self) -> str:
        return self.path or self.name

    @property
    def notes(self) -> list[str]:
        if not self.left_out:
            return []
        more = len(self.left_out) - MOST_LEFT_OUT
        quoted = ", ".join(self.left_out[:MOST_LEFT_OUT]) + (
            f" and {more} more" if more > 0 else ""
        )
        return [f"magics and shell lines were left out: {quoted}"]

    def line(self, number: int) -> Line:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else Line(0, 0, "")

    def locate(self, location: Location) -> Location:
        """Returns the reader's cell and line for a line of the text."""
        line, (frame, *others) = self.line(location.line), location.frames
        frame = frame._replace(path=self.file, line=line.number)
        return Location((frame, *others), line.cell, line.code.strip())


def location_in(cell: int, number: int) -> str:
    return f"cell {cell}, line {number}" if cell else f"line {number}"


def location_in_file(name: str, cell: int, number: int) -> str:
    """Returns a line with the name of its file; a cell of a running notebook is itself what is examined."""
    if not number:
        return name
    words = location_in(cell, number)
    return words if cell and name == f"cell {cell}" else f"{name}, {words}"


def listing_of(name: str, cells: Sequence[Cell], path: str = "") -> Listing:
    """Returns the cells as one program, in which lines that only IPython understands are empty.

    Raises UserError if nothing is left.
    """
    begin, listed, program, left_out = [BEGIN], [Line(0, 0, "")], [], []
    for cell in cells:
        python, removed = python_in(cell)
        left_out += removed
        for number, (code, shown) in enumerate(zip(python, lines_of(cell.text)), 1):
            listed.append(Line(cell.number, number, shown))
            future = FUTURE.match(code)
            if future:  # which must stand first
                begin.insert(0, f"from __future__ import {future[1]}")
            program.append("" if future else code)
    if not is_program(program):
        raise UserError(f"{nothing_in(name, cells, left_out)}, so there is no program to examine.")
    text = "\n".join(["; ".join(begin), *program, ""])
    return Listing(name, tuple(listed), tuple(left_out), text, path)


def is_program(lines: Iterable[str]) -> bool:
    return any(code.split("#")[0].strip() not in ("", "pass") for code in lines)


def lines_of(text: str) -> list[str]:
    """Returns the lines as Python counts them, for which a form feed does not end a line."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def nothing_in(name: str, cells: Sequence[Cell], left_out: list[str]) -> str:
    if left_out:
        return f"{name} has only magics and shell lines ({', '.join(left_out)})"
    commented = any(cell.text.strip() for cell in cells)
    return f"{name} has nothing but comments" if commented else f"{name} is empty"


def python_in(cell: Cell) -> tuple[list[str], list[str]]:
    """Returns the lines of a cell, as many as it has, and quotes what was removed from them."""
    lines = lines_of(cell.text)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    magic = re.match(r"%%(\w+)", lines[first].strip())
    if not magic:
        return without_magics(cell.number, lines)
    if magic[1] not in AROUND_PYTHON:
        return [""] * len(lines), [f"{location_in(cell.number, first + 1)} `{magic[0]}`"]
    below = [""] * (first + 1) + lines[first + 1 :]
    return without_magics(cell.number, below)


def without_magics(cell: int, lines: list[str]) -> tuple[list[str], list[str]]:
    """Finds magics as IPython does, so a percent sign within a string stays where it is."""
    from IPython.core import inputtransformer2 as ipython

    kinds: tuple[Any, ...] = (
        ipython.MagicAssign,
        ipython.SystemAssign,
        ipython.EscapedCommand,
        ipython.HelpEnd,
    )
    ended = [f"{line}\n" for line in lines]
    removed: dict[int, str] = {}
    while True:
        tokens = ipython.make_tokens_by_line(ended)
        magic = next(filter(None, (kind.find(tokens) for kind in kinds)), None)
        if magic is None:
            quoted = [removed[number] for number in sorted(removed)]
            return [line.removesuffix("\n") for line in ended], quoted
        start = magic.start_line
        last = min(ipython.find_end_of_continued_line(ended, start), len(ended) - 1)
        last = max(last, getattr(magic, "q_line", last))
        if not NEEDLESS.match(ended[start].strip()):
            removed[start] = f"{location_in(cell, start + 1)} `{ended[start].strip()}`"
        indent = ended[start][: len(ended[start]) - len(ended[start].lstrip())].rstrip("\n")
        ended[start : last + 1] = [f"{indent}pass\n", *["\n"] * (last - start)]


def require_python(listing: Listing) -> None:
    """Raises UserError for what Python cannot compile, with the place where its reader has it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(listing.text, listing.name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = listing.line(error.lineno or 0)
        place = location_in_file(listing.name, line.cell, line.number)
        code = f": {line.code.strip()!r}" if line.number else "."
        raise UserError(f"{place} is not Python ({error.msg}){code}") from None
    except ValueError as error:  # a null byte
        raise UserError(f"{listing.name} is not Python ({error}).") from None


# Where cells come from


def read_cells(path: Path) -> list[Cell]:
    """Returns the code cells of a notebook, counted from 1; raises UserError for what is not one with Python."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        texts = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    except FileNotFoundError:
        raise UserError(f"There is no file {str(path)!r} to examine.") from None
    except Exception as error:  # nbformat raises its own, json's and jsonschema's kinds
        raise UserError(
            f"{str(path)!r} is not a notebook ({type(error).__name__}); give a .ipynb file."
        ) from None
    if language.lower() != "python":
        raise UserError(
            f"{str(path)!r} is written in {language}, and a program in Python is examined."
        )
    return [Cell(number, text) for number, text in enumerate(texts, 1)]


def line_in_file(path: Path, cell: int, number: int) -> int:
    """Returns where a line of a code cell is in the notebook's own JSON, as most programs write it; 0 if it is not there."""
    raw = path.read_text()
    position, codes = 0, 0
    for stored in json.loads(raw).get("cells", []):
        position = raw.find('"source"', position)
        codes += stored["cell_type"] == "code"
        source = stored["source"] if isinstance(stored["source"], list) else ()
        for place, line in enumerate(source, 1):
            written = [json.dumps(line, ensure_ascii=ascii_only) for ascii_only in (False, True)]
            position = max(raw.find(form, position) for form in written)
            if position < 0:
                return 0
            if (stored["cell_type"], codes, place) == ("code", cell, number):
                return raw.count("\n", 0, position) + 1
            position += 1
    return 0
