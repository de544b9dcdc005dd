"""Code cells as one program: what in them is Python, and which cell and line each line of the program comes from."""

import ast
import inspect
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..observer import notebook
from .findings import Location


class Use(Enum):
    """What is done with a magic in a program that is run without IPython."""

    RUN = "it does the same"
    CODE = "the Python in it is run"
    NEEDLESS = "it has no purpose outside of a notebook, and nothing is said of it"
    LEFT_OUT = "it is left out, and a note says so"
    REFUSED = "the program cannot be run without it"


# Packages are there already: to install them would change the reader's environment at every run.
INSTALLERS = ("conda", "mamba", "micromamba", "pip", "uv")
INSTALLS = re.compile(
    r"\s*(?:sudo\s+)?(?:\S*python\S*\s+-m\s+)?(?:apt|apt-get|brew|conda|mamba|pip[\d.]*|uv)\s(?:.*\s)?"
    r"(?:install|remove|uninstall|update|upgrade)\b"
)
LINE_MAGICS = {
    **dict.fromkeys((*notebook.LINE_MAGICS, *notebook.SHELL_COMMANDS), Use.RUN),
    **dict.fromkeys(("lprun", "memit", "mprun", "prun", "time", "timeit"), Use.CODE),
    **dict.fromkeys(("autoreload", "config", "load_ext", "matplotlib"), Use.NEEDLESS),
    **dict.fromkeys(("reload_ext", "unload_ext"), Use.NEEDLESS),
    **dict.fromkeys((*INSTALLERS, "pinfo", "pinfo2", "tensorboard"), Use.LEFT_OUT),
    **dict.fromkeys(("macro", "pylab", "recall", "rerun", "store"), Use.REFUSED),
}
CELL_MAGICS = {
    **dict.fromkeys((*notebook.INTERPRETERS, *notebook.WRITES), Use.RUN),
    **dict.fromkeys(("capture", "examine", "memit", "prun", "time", "timeit", "wandb"), Use.CODE),
    **dict.fromkeys(("HTML", "html", "javascript", "js", "latex"), Use.LEFT_OUT),
    **dict.fromkeys(("markdown", "svg"), Use.LEFT_OUT),
}
# Options before the Python in a line; those of one letter may have a value.
OPTIONS = re.compile(r"(?:-[lnpr]\s*\d+\s*|-[DTfms]\s*\S+\s*|--?[a-z][\w-]*(?:\s+|$))*")
# A single line that IPython takes for a magic without its percent sign, if it is not Python.
AUTOMAGIC = re.compile(r"(\w+)(?:\s+[^=\s(].*)?$")
IN_SHELL = re.compile(r"get_ipython\(\)\.(?!run_line_magic\('run')")
# A kernel has `display`, and a program has not. What a program begins with stands in its first line, before all cells.
BEGIN = "display = print"
BEGIN_SHELL = f"from {notebook.__name__} import get_ipython"
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
    def in_loop(self) -> bool:
        return self.text.partition("\n")[0].endswith(notebook.IN_A_LOOP)

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

    def numbers_of(self, place: Location) -> list[int]:
        """Returns the lines of the text that a cell's line has become, mostly one."""
        wanted = place.cell, place.line
        return [i for i, each in enumerate(self.lines, 1) if (each.cell, each.number) == wanted]

    def lines_of_cell(self, cell: int) -> range:
        own = [i for i, each in enumerate(self.lines, 1) if each.cell == cell and each.number]
        return range(own[0], own[-1] + 1)

    def shown_in(self, cell: int) -> list[str]:
        """Returns the lines of a cell as the reader has them; what is run of it may have more."""
        own = dict.fromkeys(each for each in self.lines if each.cell == cell and each.number)
        return [each.code for each in own]

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
    """Returns the cells as one program, in which what only IPython understands is Python, or is left out.

    Raises UserError if nothing is left, or if a line cannot be run without IPython.
    """
    begin, listed, program, left_out = [BEGIN], [Line(0, 0, "")], [], []
    for cell in cells:
        python = python_in(cell)
        left_out += python.left_out
        require_no_ipython(name, python)
        numbered = enumerate(lines_of(cell.text), 1)
        listed += [Line(cell.number, number, shown) for number, shown in numbered]
        listed += [listed[-1]] * (len(python.lines) - len(lines_of(cell.text)))
        for future in reversed(futures_in(python.lines)):  # which must stand first
            begin.insert(0, ast.unparse(future))
            take_out(future, python.lines)
        program += python.lines
    if not is_program(program):
        pairs = zip(program, listed[1:])
        left_out += [quoted(line) for code, line in pairs if IN_SHELL.match(code.strip())]
        raise UserError(f"{nothing_in(name, cells, left_out)}, so there is no program to examine.")
    if any("get_ipython" in code for code in program):
        begin.append(BEGIN_SHELL)
    text = "\n".join(["; ".join(begin), *program, ""])
    if needs_loop(text, cells):
        text = text.replace("\n", f"{notebook.IN_A_LOOP}\n", 1)
    return Listing(name, tuple(listed), tuple(left_out), text, path)


def futures_in(lines: Sequence[str]) -> list[ast.ImportFrom]:
    try:
        statements = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError):
        return []
    imports = [each for each in statements if isinstance(each, ast.ImportFrom)]
    return [each for each in imports if each.module == "__future__"]


def take_out(statement: ast.stmt, lines: list[str]) -> None:
    """Puts `pass` in the place of a statement, on its last line."""
    first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
    before = lines[first].encode()[: statement.col_offset].decode()
    after = lines[last].encode()[statement.end_col_offset :].decode()
    lines[first : last + 1] = [before, *[""] * (last - first)]
    lines[last] += f"pass{after}"


def quoted(line: Line) -> str:
    return f"{line.location} `{line.code.strip()}`"


def require_no_ipython(name: str, python: "Python") -> None:
    for place in python.refused:
        raise UserError(
            f"{name}, {place} cannot be run without IPython: write it in Python, or take it out."
        )


def needs_loop(text: str, cells: Sequence[Cell]) -> bool:
    """Tells whether a program waits at its top level; a notebook may also find the loop that it runs in by `asyncio`."""
    if "asyncio" in text and any(cell.number for cell in cells):
        return True
    with warnings.catch_warnings(action="ignore"):
        try:
            code = compile(text, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError):
            return False
    return bool(code.co_flags & inspect.CO_COROUTINE)


def is_program(lines: Iterable[str]) -> bool:
    """Tells whether there is Python besides commands of the shell; `%run` runs a program, too."""
    return any(
        code.split("#")[0].strip() not in ("", "pass") and not IN_SHELL.match(code.strip())
        for code in lines
    )


def lines_of(text: str) -> list[str]:
    """Returns the lines as Python counts them, for which a form feed does not end a line."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def nothing_in(name: str, cells: Sequence[Cell], left_out: list[str]) -> str:
    if left_out:
        return f"{name} has only magics and shell lines ({', '.join(left_out)})"
    commented = any(cell.text.strip() for cell in cells)
    return f"{name} has nothing but comments" if commented else f"{name} is empty"


@dataclass
class Python:
    """The Python of a cell: as many lines as the cell has, or one more, and the places of what it lacks, with quotes."""

    lines: list[str]
    left_out: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def python_in(cell: Cell) -> Python:
    """Returns what is run of a cell."""
    lines = lines_of(cell.text)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    magic = re.match(r"%%(\w+)\s*(.*)", lines[first].strip())
    if magic:
        return python_of_magic(cell.number, lines, first, magic[1], magic[2])
    if len(lines) == 1 and is_automagic(lines[0]):
        lines = [f"%{lines[0]}"]
    return without_magics(cell.number, lines)


def is_automagic(line: str) -> bool:
    """Tells whether IPython takes a cell of one line for a magic without its percent sign."""
    found = AUTOMAGIC.match(line)
    if not found or found[1] not in LINE_MAGICS:
        return False
    return found[1] in ("ls", "pwd") or not is_python(line)


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def python_of_magic(cell: int, lines: list[str], first: int, name: str, rest: str) -> Python:
    """Returns what is run of a cell below a cell magic."""
    use, below = CELL_MAGICS.get(name, Use.REFUSED), lines[first + 1 :]
    place = f"{location_in(cell, first + 1)} `%%{name}`"
    empty = [""] * first
    if use is Use.CODE:
        begin, end = around(name, rest)
        python = without_magics(cell, [*empty, begin, *below])
        python.lines += end
        return python
    if use is Use.RUN and not any(map(INSTALLS.match, below)):
        body = "".join(f"{line}\n" for line in below)
        call = f"get_ipython().run_cell_magic({name!r}, {rest!r}, {body!r})"
        return Python([*empty, call, *[""] * len(below)])
    gone = Python([""] * len(lines))
    (gone.refused if use is Use.REFUSED else gone.left_out).append(place)
    return gone


def around(name: str, rest: str) -> tuple[str, list[str]]:
    """Returns what is run before and after the Python of a cell: the first line of `%%timeit` prepares it."""
    if name == "timeit":
        return rest[OPTIONS.match(rest).end() :], []  # type: ignore[union-attr] # which matches anything
    target = rest.split()[0] if rest else ""
    if name == "capture" and target.isidentifier():
        return f"{target} = get_ipython().begin_capture()", [f"{target}.end()"]
    return "", []


def without_magics(cell: int, lines: list[str]) -> Python:
    """Finds magics as IPython does, so a percent sign within a string stays where it is."""
    from IPython.core import inputtransformer2 as ipython

    kinds: tuple[Any, ...] = (
        ipython.MagicAssign,
        ipython.SystemAssign,
        ipython.EscapedCommand,
        ipython.HelpEnd,
    )
    ended = [f"{line}\n" for line in lines]
    noted: dict[int, tuple[Use, str]] = {}  # by line: they are found by their kind
    while True:
        tokens = ipython.make_tokens_by_line(ended)
        magic = next(filter(None, (kind.find(tokens) for kind in kinds)), None)
        if magic is None:
            left_out, refused = (
                [noted[start][1] for start in sorted(noted) if noted[start][0] is use]
                for use in (Use.LEFT_OUT, Use.REFUSED)
            )
            return Python([line.removesuffix("\n") for line in ended], left_out, refused)
        start = magic.start_line
        last = min(ipython.find_end_of_continued_line(ended, start), len(ended) - 1)
        last = max(last, getattr(magic, "q_line", last))
        call = magic.transform(ended)[start]  # of IPython's shell
        use, code = translated(call.strip())
        noted[start] = use, f"{location_in(cell, start + 1)} `{ended[start].strip()}`"
        indent = call[: len(call) - len(call.lstrip())].rstrip("\n")
        ended[start : last + 1] = [f"{indent}{code}\n", *["\n"] * (last - start)]


CALL = re.compile(
    r"(?P<target>.*?)get_ipython\(\)\.(?P<method>\w+)(?P<arguments>\(.*\))$", re.DOTALL
)


def translated(call: str) -> tuple[Use, str]:
    """Returns what is done with a call of IPython's shell, and the Python that is run instead."""
    found = CALL.match(call)
    if not found:  # `/f x` is f(x)
        return Use.RUN, call
    target, (name, *more) = found["target"], ast.literal_eval(f"[{found['arguments'][1:-1]}]")
    nothing = f"{target}[]" if target else "pass"
    if found["method"] != "run_line_magic":
        return (Use.LEFT_OUT, nothing) if INSTALLS.match(name) else (Use.RUN, call)
    use, rest = LINE_MAGICS.get(name, Use.REFUSED if target else Use.LEFT_OUT), more[0].strip()
    if use is Use.CODE:
        return code_in(name, rest, target)
    if name == "run" and ".ipynb" in rest:
        return Use.REFUSED, "pass"
    return use, call if use is Use.RUN else nothing


def code_in(name: str, rest: str, target: str) -> tuple[Use, str]:
    """Returns the Python in a line that takes its time, or the like; `-o` asks for an object with the times."""
    options = OPTIONS.match(rest).group()  # type: ignore[union-attr] # which matches anything
    if target and name != "time":
        return Use.REFUSED, "pass"
    return Use.CODE, target + (rest[len(options) :] or "pass")


def require_python(listing: Listing) -> None:
    """Raises UserError for what Python cannot compile, with the place where its reader has it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if listing.in_loop else 0
            compile(listing.text, listing.name, "exec", flags, dont_inherit=True)
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
    raw = path.read_text(encoding="utf-8")
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
