"""The picture of what replicas hold in a step of one program or more, each below the other, with the lines of the programs."""

from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

from ..base.errors import UserError
from ..inside import text
from ..inside.excerpt import Excerpt, excerpt_of
from ..inside.tables import AT_THE_END, Row, Tables
from .changed_lines import changed_lines
from .figures import DOTS, HAVE, INK, LACK, PAPER, Picture, as_picture, draw_box

# In inches. Letters of 9 points, those of code of 8.5: 9 pixels of a picture of the usual width on a page of 400.
LETTER, BOLD, MONOSPACE = 0.075, 0.083, 0.0722
# Heights are whole numbers of pixels, even ones, so that the same box has the same pixels wherever it is: the file is smaller.
BETWEEN, TITLE, HEAD, LINE, ROW, BESIDE = (pixels / DOTS for pixels in (24, 34, 26, 22, 36, 16))
WIDTH, LEAST_BOX, COMPARED, INDENT, EDGE = 4.85, 1.05, 0.72, 0.12, 0.05
SAMPLES = 1.3, 1.22, 2.23  # the widths of the boxes that say what boxes mean
END = 6  # letters at the end of words that are too long for their box
NONE, NO_COPY = "none", "no copy"  # where a replica holds nothing
FITS = {"fits one device": True, "does not fit": False, "one device, or not compared": None}
ABOUT = {NONE: "nothing is held here", NO_COPY: "the variable has no copy on this replica"}


def draw(programs: Mapping[str, Tables]) -> Picture:
    """Draws an excerpt of each program by its name, all of the step in which the first one differs, under a legend."""
    excerpts = excerpts_of(programs)
    shown = (text.excerpt_in_words(each, changed_lines(each.tables)) for each in excerpts)
    alt = "\n\n".join(["\n".join([text.FITS, *legend_of(excerpts)]), *shown])
    return as_picture(Sheet(excerpts).figure, alt, is_small=True)


def excerpts_of(programs: Mapping[str, Tables]) -> list[Excerpt]:
    excerpts: list[Excerpt] = []
    for name, tables in programs.items():
        if not tables.steps:
            raise UserError(f"{name} cannot be drawn: {tables.headline}.")
        excerpts.append(excerpt_of(name, tables, excerpts[0] if excerpts else None))
    return excerpts


def legend_of(excerpts: Sequence[Excerpt]) -> list[str]:
    """Returns what the words mean that these rows have."""
    words = {word for each in excerpts for row in each.rows for word in words_in(row, each.tables)}
    legend = text.legend_of(row for each in excerpts for row in each.rows)
    return [*legend, *(f"{word}: {about}" for word, about in ABOUT.items() if word in words)]


def verdict_on(row: Row) -> bool | None:
    """Tells whether a row fits one device; None if it is not compared."""
    return False if row.mark else True if row.compared else None


def words_in(row: Row, tables: Tables) -> list[str]:
    """Returns the words of the boxes; where a replica holds nothing, it is said whether a copy is missing."""
    nothing = NO_COPY if row.stage.key in AT_THE_END else NONE
    words = [nothing if each == text.NOTHING else each for each in text.values_in(row, tables)]
    whole = [cell.words for cell in (row.cells[0], row.alone) if cell and cell.words]
    words = whole if len(whole) == 2 else words
    return [words[0], words[-1]] if row.is_together else words  # the first box is for all replicas


def in_lines(words: str, width: float) -> str:
    """Returns words in one line or two that fit into a width; of words that do not fit, the beginning and the end."""
    most = int((width - 0.15) / LETTER)
    first, *others = wrap(words, most) or [""]
    rest = " ".join(others)
    last = rest if len(others) < 2 else f"{rest[: most - END - 1]}…{rest[-END:]}"
    return f"{first}\n{last}".strip()


class Sheet:
    """A figure that is written from the top to the bottom."""

    def __init__(self, excerpts: list[Excerpt]) -> None:
        columns = max(len(each.tables.columns) for each in excerpts)
        self.box = max(LEAST_BOX, (WIDTH - COMPARED - 2 * EDGE) / columns)
        self.width = self.box * columns + COMPARED + 2 * EDGE
        self.todo: list[tuple[float, Any]] = []
        self.mark = ""  # that was written last
        self.add_legend(legend_of(excerpts))
        for each in excerpts:
            self.add_excerpt(each)
        self.figure, self.axes = self.paper()
        self.y = 0.0
        for height, act in self.todo:
            act(self.y + height / 2)
            self.y += height

    def add_legend(self, words: list[str]) -> None:
        self.add(ROW, self.write_samples)
        for each in words:
            self.add_words(each, color=INK)

    def add_excerpt(self, excerpt: Excerpt) -> None:
        ink = LACK if excerpt.step.marked else HAVE
        self.add(BETWEEN, lambda y: None)
        self.add_words(excerpt.headline, BOLD, TITLE, color=ink, weight="bold", fontsize=9.5)
        self.add_columns(text.columns_of(excerpt.tables))
        for code, rows in excerpt.groups:
            if code:
                self.add_code(code)
            for row in rows:
                self.add_row(row, excerpt.tables)
        if excerpt.more:
            self.add_words(excerpt.more, color=INK, x=INDENT)
        self.add_changed(changed_lines(excerpt.tables))

    def add_columns(self, heads: list[str]) -> None:
        columns = self.columns(len(heads) - 2)
        words = [
            "\n".join(wrap(head, int(width / LETTER))) for head, (_, width) in zip(heads, columns)
        ]
        lines = max(each.count("\n") for each in words)
        self.add(HEAD + lines * BESIDE, partial(self.write_columns, columns, words))

    def add_changed(self, lines: list[str]) -> None:
        for title in lines[:1]:
            self.add_words(title, BOLD, HEAD, color=INK, weight="bold")
        for code in lines[1:]:
            self.add_code(code)

    def add_row(self, row: Row, tables: Tables) -> None:
        sign = f"{text.DIFFERS} " if row.mark else ""
        looks: dict[str, Any] = {"color": LACK, "weight": "bold"} if row.mark else {"color": INK}
        self.add_words(sign + text.label(row), BOLD, x=INDENT, **looks)
        if row.mark and row.mark != self.mark:
            self.add_words(row.mark, x=2 * INDENT, color=LACK)
        self.mark = row.mark
        boxes = self.boxes_of(row, words_in(row, tables))
        lines = max(word.count("\n") for _, _, word in boxes)
        self.add(ROW + lines * BESIDE, partial(self.write_row, row, boxes))

    def boxes_of(self, row: Row, words: list[str]) -> list[tuple[float, float, str]]:
        """Returns the middle and the width of each box of a row, and its words in lines that fit into it."""
        *places, _, last = self.columns(len(words) - 1)
        return [
            (x, width, in_lines(word, width)) for word, (x, width) in zip(words, [*places, last])
        ]

    def add_words(
        self,
        words: str,
        letter: float = LETTER,
        height: float = LINE,
        x: float = EDGE,
        **looks: Any,
    ) -> None:
        """Adds a line of words, or more of them if it is too long."""
        for line in wrap(words, int((self.width - x - EDGE) / letter)):
            self.add(height, partial(self.write, x, line, **looks))
            height = LINE

    def add_code(self, code: str) -> None:
        most, indent = int((self.width - 2 * EDGE) / MONOSPACE), " " * 6
        wrapped = wrap(code, most, subsequent_indent=indent, drop_whitespace=False)
        for line in wrapped or [code]:
            act = partial(self.write, EDGE, line, color=INK, family="monospace", fontsize=8.5)
            self.add(LINE, act)

    def add(self, height: float, act: Any) -> None:
        self.todo.append((height, act))

    def paper(self) -> tuple[Any, Any]:
        """Returns a figure and its axes, whose unit is an inch from the upper left corner."""
        from matplotlib.figure import Figure

        height = sum(each for each, _ in self.todo)
        figure = Figure(figsize=(self.width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, self.width), ylim=(height, 0), facecolor=PAPER)
        axes.set_axis_off()
        return figure, axes

    def write(self, x: float, words: str, y: float, **looks: Any) -> None:
        self.axes.text(x, y, words, **{"va": "center", "fontsize": 9, "parse_math": False, **looks})

    def write_samples(self, y: float) -> None:
        left = EDGE
        for width, (words, verdict) in zip(SAMPLES, FITS.items()):
            sign = f"{text.DIFFERS} {words}" if verdict is False else words
            self.write_box(left + width / 2, y, width, sign, verdict)
            left += width

    def write_columns(self, columns: list[tuple[float, float]], heads: list[str], y: float) -> None:
        for head, (x, _) in zip(heads, columns):
            self.write(x, head, y, color=INK, ha="center")

    def write_row(self, row: Row, boxes: list[tuple[float, float, str]], y: float) -> None:
        """Writes the boxes of a row. That of one device is neither right nor wrong, since the others are compared with it."""
        *mine, alone = boxes
        for x, width, word in mine:
            self.write_box(x, y, width, word, verdict_on(row))
        self.write_box(alone[0], y, *alone[1:], None)
        between, _ = self.columns(len(mine))[-2]
        self.write(between, text.compared_in(row), y, color=INK, ha="center")

    def write_box(self, x: float, y: float, width: float, word: str, verdict: bool | None) -> None:
        verdict = None if verdict and word in ABOUT else verdict
        height = ROW + word.count("\n") * BESIDE
        draw_box(self.axes, (x, y), (width / 2 - 0.06, height / 2 - 0.08), word, verdict)

    def columns(self, boxes: int) -> list[tuple[float, float]]:
        """Returns the middle and the width of each column: so many boxes of replicas, what is compared, and one device."""
        room = self.width - 2 * EDGE - COMPARED - self.box
        widths = [*[room / boxes] * boxes, COMPARED, self.box]
        return [(EDGE + sum(widths[:n]) + width / 2, width) for n, width in enumerate(widths)]
