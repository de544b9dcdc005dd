"""Pictures of what runs have shown, each with its content as text for readers who do not see it."""

import base64
import io
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from ..base.templates import from_template
from ..programs.run import Observations
from ..programs.variable_copies import copies as copies
from ..programs.variable_copies import values_of as values_of

# Words are readable on the paper, 4.5 to 1 at least, and white words in HAVE. No ink is on both white and a dark page.
PAPER, INK, HAVE, LACK, QUIET = "#ffffff", "#4a4a4a", "#2f7f5f", "#b34a31", "#b0b0b0"
# The colours of words, inside and frame of a box: right, wrong, or neither.
BOXES = {True: ("white", HAVE, HAVE), False: (LACK, PAPER, LACK), None: (INK, PAPER, QUIET)}

LETTER = 0.075  # inches
DOTS = 110  # to the inch
EDGES = 1, 0.5  # how much of a colour a dot has at the edge of a letter


@dataclass(frozen=True)
class Picture:
    """PNG bytes and the same content in words."""

    png: bytes
    alt: str

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        data = {"image/png": self.base64, "text/plain": self.alt}
        alt = self.alt.replace('"', "'")  # nbconvert does not escape it
        return data, {"image/png": {"alt": alt}}

    def as_html(self) -> str:
        return from_template("panel/templates/picture.html", alt=self.alt, png=self.base64)


def canvas(width: float, height: float) -> tuple[Any, Any]:
    """Returns a figure and its axes, made without pyplot, whose state and backend are global."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor(PAPER)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure, axes


def as_picture(figure: Any, alt: str, *, is_small: bool = False) -> Picture:
    """Returns a figure as a picture; a small one has our own colours only, each also mixed with that of the paper."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS, facecolor=PAPER, metadata={"Software": None})
    return Picture(with_few_colours(buffer) if is_small else buffer.getvalue(), alt)


def with_few_colours(png: io.BytesIO) -> bytes:
    from PIL import Image

    small, palette = io.BytesIO(), Image.new("P", (1, 1))
    palette.putpalette([part for colour in few_colours() for part in colour])
    with Image.open(png) as image:
        few = image.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE)
        few.save(small, "png", optimize=True)
    return small.getvalue()


def few_colours() -> list[tuple[int, ...]]:
    """Returns at most 16 colours, so that a dot is half a byte: the paper's, and the edges of letters and boxes on it."""
    paper, *inks = (bytes.fromhex(each[1:]) for each in (PAPER, INK, HAVE, LACK, QUIET))
    mixed = [
        tuple(round(part * a + (1 - part) * b) for a, b in zip(ink, paper))
        for ink in inks
        for part in EDGES
    ]
    return [tuple(paper), *mixed]


def grid(
    cells: dict[str, list[Any]], columns: list[str], good: str, bad: str, title: str = ""
) -> Picture:
    """Draws a table of yes and no: `cells` has, for each row, one truth value per column."""

    def mark(value: Any) -> tuple[bool, str]:
        return bool(value), good if value else bad

    marked = {row: list(map(mark, values)) for row, values in cells.items()}
    return heat_map(marked, columns, title, [f"{column} " for column in columns])


def words(
    cells: dict[str, list[str]], columns: list[str], bad: str | Container[str], title: str = ""
) -> Picture:
    """Draws a table of words: `cells` has, for each row, one word per column; `bad` is a word, or several."""
    wrong = [bad] if isinstance(bad, str) else bad
    marked = {row: [(word not in wrong, word) for word in values] for row, values in cells.items()}
    return heat_map(
        marked, columns, title, [column.replace("\n", " ") + ": " for column in columns]
    )


def numbers(
    cells: dict[str, list[float]], columns: list[str], right: list[float], title: str = ""
) -> Picture:
    """Draws a table of numbers: those that `right` has for their column get the quiet colour."""

    def mark(value: float, want: float) -> tuple[bool, str]:
        return abs(value - want) < 0.005, f"{value:.2f}"

    marked = {row: list(map(mark, values, right)) for row, values in cells.items()}
    return heat_map(marked, columns, title, [column.replace("\n", " ") + " " for column in columns])


def heat_map(
    cells: dict[str, list[tuple[bool, str]]], columns: list[str], title: str, labels: list[str]
) -> Picture:
    """Draws a word in each cell, in a full box where it is right; `labels` name the columns in the text."""
    longest = max(len(word) for marks in cells.values() for _, word in marks)
    boxes = max(1.05, LETTER * longest) * len(columns)
    names = LETTER * max(map(len, cells))
    width = max(1.9 + boxes, names + boxes, names + LETTER * len(title))
    figure, axes = canvas(width, 0.95 + 0.36 * len(cells))
    for y, marks in enumerate(cells.values()):
        for x, (good, word) in enumerate(marks):
            draw_cell(axes, x, y, word, good)
    name_axes(axes, list(cells), columns, title)
    lines = []
    for row, values in cells.items():
        parts = [f"{label}{word}" for label, (_, word) in zip(labels, values)]
        lines.append(f"{row}: {', '.join(parts)}")
    return as_picture(figure, "\n".join(lines))


def name_axes(axes: Any, rows: list[str], columns: list[str], title: str) -> None:
    """Writes the names of columns above and those of rows at the side, the first row on top."""
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(title, color=INK, fontsize=10, loc="left")


def draw_cell(axes: Any, x: int, y: int, word: str, good: bool) -> None:
    draw_box(axes, (x, y), (0.42, 0.36), word, good)


def draw_box(
    axes: Any,
    middle: tuple[float, float],
    half: tuple[float, float],
    word: str,
    good: bool | None,
) -> None:
    """Draws a full box, or an empty one with a frame: the difference shows without colours. None draws a quiet frame."""
    from matplotlib.patches import FancyBboxPatch

    ink, fill, edge = BOXES[good]
    (x, y), (width, height) = middle, half
    box = FancyBboxPatch((x - width, y - height), 2 * width, 2 * height, "round,pad=0.04")
    box.set(edgecolor=edge, facecolor=fill, linewidth=1.5)
    axes.add_patch(box)
    axes.text(x, y, word, ha="center", va="center", color=ink, fontsize=9)


def placement(observations: Observations) -> Picture:
    """Draws which device holds a copy of which variable, for every group that a run has found."""
    rows: dict[str, list[str]] = {}
    for label, group in observations.items():
        for devices in dict.fromkeys(map(tuple, group.values())):
            names = [name for name, places in group.items() if tuple(places) == devices]
            row = ", ".join(names) if len(names) < 4 else f"{len(names)} variables"
            rows[f"{label}: {row}"] = list(devices)
    columns = list(dict.fromkeys(device for devices in rows.values() for device in devices))
    cells = {row: [column in devices for column in columns] for row, devices in rows.items()}
    drawn = grid(cells, [column.replace(" ", "\n", 1) for column in columns], "copy", "none")
    # Counts, not names of devices: the same sentence on CPUs, GPUs and TPUs.
    counts = {row: len(devices) for row, devices in rows.items()}
    text = [f"{row}: {n} {'copy' if n == 1 else 'copies'}" for row, n in counts.items()]
    return Picture(drawn.png, "\n".join(text))


def timeline(lines: dict[str, list[float]], event: int, event_name: str, axis: str) -> Picture:
    """Draws values over steps, with one event marked, such as a restart."""
    figure, axes = canvas(5.6, 2.6)
    for (name, values), (colour, style) in zip(lines.items(), [(HAVE, "-"), (LACK, "--")]):
        steps = range(len(values))
        axes.plot(steps[:event], values[:event], style, color=colour, linewidth=2, label=name)
        axes.plot(steps[event:], values[event:], style, color=colour, linewidth=2)
    axes.axvline(event - 0.5, color=INK, linewidth=1, linestyle=":")
    top = axes.get_xaxis_transform()
    axes.text(event - 0.4, 0.98, event_name, color=INK, va="top", fontsize=9, transform=top)
    axes.set_xlabel("training step", color=INK)
    axes.set_ylabel(axis, color=INK)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="upper left")
    ends = {name: (values[event - 1], values[event]) for name, values in lines.items()}
    text = [f"{name}: {a:.2f} before {event_name}, {b:.2f} after" for name, (a, b) in ends.items()]
    return as_picture(figure, "\n".join(text))
