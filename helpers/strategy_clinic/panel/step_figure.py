"""The picture of what replicas hold in a step of one program or more, each below the other, with the lines of the programs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..base.errors import UserError
from ..inside import text
from ..inside.excerpt import Excerpt, excerpt_of
from ..inside.tables import Row, Tables
from .figures import HAVE, INK, LACK, PAPER, Picture, as_picture, draw_box

# In inches. Letters of 9 points.
LETTER, MONOSPACE = 0.075, 0.0722
BETWEEN, TITLE, HEAD, CODE, ROW, MARK = 0.25, 0.3, 0.24, 0.27, 0.33, 0.2
LEAST_BOX, INDENT = 1.05, 0.12
NONE = "none"  # where a replica holds nothing
MOST_COLOURS = 24  # of letters and boxes, so that the file is small


def draw(programs: Mapping[str, Tables]) -> Picture:
    """Draws an excerpt of each program by its name; those in which nothing differs show the rows of the first one."""
    excerpts = excerpts_of(programs)
    alt = "\n\n".join(map(text.excerpt_in_words, excerpts))
    return as_picture(Sheet(excerpts).figure, alt, MOST_COLOURS)


def excerpts_of(programs: Mapping[str, Tables]) -> list[Excerpt]:
    excerpts: list[Excerpt] = []
    for name, tables in programs.items():
        if not tables.steps:
            raise UserError(f"{name} cannot be drawn: {tables.headline}.")
        excerpts.append(excerpt_of(name, tables, excerpts[0] if excerpts else None))
    return excerpts


class Sheet:
    """A figure that is written from the top to the bottom."""

    def __init__(self, excerpts: list[Excerpt]) -> None:
        rows = [(each, row) for each in excerpts for row in each.rows]
        words = [word for each, row in rows for word in text.values_in(row, each.tables)]
        self.label = LETTER * max(len(text.label(row)) for _, row in rows) + INDENT
        self.box = max(LEAST_BOX, LETTER * max(map(len, words)) + 0.2)
        columns = max(len(each.tables.columns) for each in excerpts)
        self.width = self.label + self.box * columns + INDENT
        self.todo: list[tuple[float, Any]] = []
        self.mark = ""  # that was written last
        for each in excerpts:
            self.add_excerpt(each)
        self.figure, self.axes = self.paper()
        self.y = 0.0
        for height, act in self.todo:
            act(self.y + height / 2)
            self.y += height

    def add_excerpt(self, excerpt: Excerpt) -> None:
        ink = LACK if excerpt.tables.first else HAVE
        if self.todo:
            self.add(BETWEEN, lambda y: None)
        self.add(TITLE, partial(self.write, 0.05, excerpt.headline, color=ink, weight="bold"))
        self.add(HEAD, partial(self.write_columns, excerpt.tables.columns))
        for code, rows in excerpt.groups:
            if code:
                self.add(CODE, partial(self.write_code, code))
            for row in rows:
                self.add_row(row, excerpt.tables)
        if excerpt.more:
            self.add(HEAD, partial(self.write, INDENT, excerpt.more, color=INK))

    def add_row(self, row: Row, tables: Tables) -> None:
        words = text.values_in(row, tables)
        nothing = "" if row.is_together else NONE  # the first box is for all replicas
        words = [nothing if word == text.NOTHING else word for word in words]
        self.add(ROW, partial(self.write_row, text.label(row), words, not row.mark))
        if row.mark and row.mark != self.mark:
            mark = f"{text.DIFFERS} {row.mark}"
            self.add(MARK, partial(self.write, INDENT, mark, color=LACK, weight="bold"))
        self.mark = row.mark

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

    def write_columns(self, columns: list[str], y: float) -> None:
        for place, column in enumerate(columns):
            self.write(self.middle(place), column, y, color=INK, ha="center")

    def write_code(self, code: str, y: float) -> None:
        most = int((self.width - 0.1) / MONOSPACE)
        short = code if len(code) <= most else f"{code[: most - 1]}…"
        self.write(0.05, short, y, color=INK, family="monospace", fontsize=8.5)

    def write_row(self, label: str, words: list[str], good: bool, y: float) -> None:
        self.write(INDENT, label, y, color=INK)
        for place, word in enumerate(words):
            size = self.box / 2 - 0.06, ROW / 2 - 0.08
            if word:
                draw_box(self.axes, (self.middle(place), y), size, word, good)

    def middle(self, place: int) -> float:
        return self.label + self.box * (place + 0.5)
