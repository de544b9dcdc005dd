"""Code cells as one program: what in them is Python, and which cell and line each line of the program comes from."""

import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UserError

# Cell magics below which stands Python that is run here all the same.
AROUND_PYTHON = ("capture", "examine", "prun", "time", "timeit")
# What they do, a process without a notebook has no need of, so nothing is said of them.
NEEDLESS = re.compile(r"%(autoreload|config|load_ext|matplotlib|reload_ext|unload_ext)\b")
FUTURE = re.compile(r"from __future__ import (\w+(?:, *\w+)*)\s*$")
# A kernel has `display`, and a program has not; whatever a program begins with stands in its first line, before all cells.
BEGIN = "display = print"


@dataclass(frozen=True)
class Cell:
    """What a reader has in one cell, by the number that Jupyter shows beside it or by its place in the file."""

    number: int  # 0: no cell, but a text
    text: str


@dataclass(frozen=True)
class Line:
    cell: int
    number: int
    code: str


@dataclass(frozen=True)
class Listing:
    """A program line by line, with the place where its reader has each line."""

    name: str
    lines: tuple[Line, ...]
    left_out: tuple[str, ...] = ()
    text: str = ""
    path: str = ""  # of the file that the cells were read from

    @property
    def file_name(self) -> str:
        return f"cells_of_{re.sub(r'[^A-Za-z0-9_]+', '_', Path(self.name).stem)}.py"

    @property
    def file(self) -> str:
        return self.path or self.name

    def line(self, number: int) -> Line:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else Line(0, 0, "")


def place_words(cell: int, number: int) -> str:
    return f"cell {cell}, line {number}" if cell else f"line {number}"


def place_in_file(name: str, cell: int, number: int) -> str:
    """A cell of a running notebook needs no other name."""
    words = place_words(cell, number)
    return words if cell and name == f"cell {cell}" else f"{name}, {words}" if number else name


def listing_of(name: str, cells: list[Cell], path: str = "") -> Listing:
    """The cells one below the other; lines of which only IPython knows the meaning are empty in it."""
    begin, lines, left_out = [BEGIN], [], []
    for cell in cells:
        kept, gone = python_in(cell)
        left_out += gone
        for number, (code, shown) in enumerate(zip(kept, lines_of(cell.text)), 1):
            future = FUTURE.match(code)
            begin = [f"from __future__ import {future[1]}", *begin] if future else begin
            lines.append((Line(cell.number, number, shown), "" if future else code))
    if not is_program(code for _, code in lines):
        raise UserError(f"{nothing_in(name, cells, left_out)}, so there is no program to examine.")
    listed = (Line(0, 0, ""), *(line for line, _ in lines))
    text = "\n".join(["; ".join(begin), *(code for _, code in lines), ""])
    return Listing(name, listed, tuple(left_out), text, path)


def is_program(lines) -> bool:
    return any(code.split("#")[0].strip() not in ("", "pass") for code in lines)


def lines_of(text: str) -> list[str]:
    """As Python counts them, to which a form feed is no end of a line."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def nothing_in(name: str, cells: list[Cell], left_out: list[str]) -> str:
    if left_out:
        return f"{name} has only magics and shell lines ({', '.join(left_out)})"
    many = len([cell for cell in cells if cell.text.strip()])
    return f"{name} has nothing but comments" if many else f"{name} is empty"


def python_in(cell: Cell) -> tuple[list[str], list[str]]:
    """The lines of a cell, as many as it has, and what was left out of them."""
    lines = lines_of(cell.text)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    magic = re.match(r"%%(\w+)", lines[first].strip())
    if not magic:
        return without_magics(cell.number, lines)
    if magic[1] not in AROUND_PYTHON:
        return [""] * len(lines), [f"{place_words(cell.number, first + 1)} `{magic[0]}`"]
    below = [""] * (first + 1) + lines[first + 1 :]
    return without_magics(cell.number, below)


def without_magics(cell: int, lines: list[str]) -> tuple[list[str], list[str]]:
    """IPython's own search finds them, so a percent sign in a text stays where it is."""
    from IPython.core import inputtransformer2 as ipython

    kinds = (ipython.MagicAssign, ipython.SystemAssign, ipython.EscapedCommand, ipython.HelpEnd)
    ended, gone = [f"{line}\n" for line in lines], {}
    while True:
        tokens = ipython.make_tokens_by_line(ended)
        found = next(filter(None, (kind.find(tokens) for kind in kinds)), None)
        if found is None:
            return [line.removesuffix("\n") for line in ended], [gone[n] for n in sorted(gone)]
        start = found.start_line
        last = min(ipython.find_end_of_continued_line(ended, start), len(ended) - 1)
        last = max(last, getattr(found, "q_line", last))
        if not NEEDLESS.match(ended[start].strip()):
            gone[start] = f"{place_words(cell, start + 1)} `{ended[start].strip()}`"
        indent = re.match(r"\s*", ended[start])[0].rstrip("\n")
        ended[start : last + 1] = [f"{indent}pass\n", *["\n"] * (last - start)]


def require_python(listing: Listing) -> Listing:
    """Refuses what no Python would run, with the place where its reader has it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(listing.text, listing.name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = listing.line(error.lineno or 0)
        said = f"{place_in_file(listing.name, line.cell, line.number)} is no Python ({error.msg})"
        raise UserError(f"{said}: {line.code.strip()!r}" if line.number else f"{said}.") from None
    except ValueError as error:  # a null byte
        raise UserError(f"{listing.name} is no Python ({error}).") from None
    return listing


# Where cells come from


def read_cells(path: Path) -> list[Cell]:
    """The code cells of a notebook, counted from 1; what is no notebook with Python is refused."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        cells = [each.source for each in notebook.cells if each.cell_type == "code"]
        spoken = notebook.metadata.get("kernelspec", {}).get("language", "python")
    except FileNotFoundError:
        raise UserError(f"There is no file {str(path)!r} to examine.") from None
    except Exception as error:  # nbformat raises its own, json's and jsonschema's kinds
        raise UserError(
            f"{str(path)!r} is not a notebook ({type(error).__name__}); give a .ipynb file."
        ) from None
    if spoken.lower() != "python":
        raise UserError(
            f"{str(path)!r} is written in {spoken}, and a program in Python is examined."
        )
    return [Cell(number, text) for number, text in enumerate(cells, 1)]


def line_in_file(path: Path, cell: int, number: int) -> int:
    """Where a line of a code cell stands in the notebook's own text, as most programs write it; 0 if it does not."""
    raw = path.read_text()
    position, codes = 0, 0
    for each in json.loads(raw).get("cells", []):
        position = raw.find('"source"', position)
        codes += each["cell_type"] == "code"
        for place, line in enumerate(each["source"] if isinstance(each["source"], list) else (), 1):
            written = [json.dumps(line, ensure_ascii=plain) for plain in (False, True)]
            position = max(raw.find(form, position) for form in written)
            if position < 0:
                return 0
            if (each["cell_type"], codes, place) == ("code", cell, number):
                return raw.count("\n", 0, position) + 1
            position += 1
    return 0
