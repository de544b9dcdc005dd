"""Pictures of what a run showed. Each carries its content as text, for those who cannot or need not look."""

import base64
import io
from dataclasses import dataclass

from ..base.templates import from_template
from ..experiments.experiment import recall
from ..experiments.variable_copies import copies, values_of

__all__ = [
    "copies",
    "grid",
    "numbers",
    "placement",
    "timeline",
    "values_of",
    "where_variables_live",
    "words",
]
INK, HAVE, LACK = "#767676", "#2f7f5f", "#c1563c"  # 4.4 to 1 at least, on white and on black


@dataclass(frozen=True)
class Picture:
    """PNG bytes and the same content in words."""

    png: bytes
    alt: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}, {
            "image/png": {"alt": self.alt}
        }

    def as_html(self) -> str:
        png = base64.b64encode(self.png).decode()
        return from_template("panel/templates/picture.html", alt=self.alt, png=png)


def canvas(width: float, height: float):
    """A bare figure made without pyplot: no global state, no backend, legible on any background."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.tick_params(colors=INK, labelsize=9, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure, axes


def as_picture(figure, alt: str) -> Picture:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, transparent=True, metadata={"Software": None})
    return Picture(buffer.getvalue(), alt)


def grid(cells: dict, columns: list[str], good: str, bad: str, title: str = "") -> Picture:
    """A heat map of yes and no: `cells` maps each row's name to one truth value per column."""
    figure, axes = canvas(1.9 + 1.05 * len(columns), 0.95 + 0.36 * len(cells))
    for y, values in enumerate(cells.values()):
        for x, value in enumerate(values):
            draw_cell(axes, x, y, value, good, bad)
    name_axes(axes, list(cells), columns, title)
    return as_picture(figure, grid_text(cells, columns, good, bad))


def words(cells: dict, columns: list[str], bad, title: str = "") -> Picture:
    """A heat map of words: `cells` maps each row's name to one word per column; `bad` is a word, or several."""
    bad = [bad] if isinstance(bad, str) else bad
    figure, axes = canvas(1.9 + 1.05 * len(columns), 0.95 + 0.36 * len(cells))
    for y, row in enumerate(cells.values()):
        for x, word in enumerate(row):
            draw_cell(axes, x, y, word not in bad, word, word)
    name_axes(axes, list(cells), columns, title)
    names = [column.replace("\n", " ") for column in columns]
    told = {row: ", ".join(f"{n}: {w}" for n, w in zip(names, row_)) for row, row_ in cells.items()}
    return as_picture(figure, "\n".join(f"{row}: {text}" for row, text in told.items()))


def numbers(cells: dict, columns: list[str], right: list[float], title: str = "") -> Picture:
    """A heat map of numbers: one that is what `right` says for its column has the quiet colour."""
    figure, axes = canvas(1.9 + 1.05 * len(columns), 0.95 + 0.36 * len(cells))
    told = {row: [f"{value:.2f}" for value in values] for row, values in cells.items()}
    for y, row in enumerate(cells):
        for x, (value, want) in enumerate(zip(cells[row], right)):
            draw_cell(axes, x, y, abs(value - want) < 0.005, told[row][x], told[row][x])
    name_axes(axes, list(cells), columns, title)
    names = [column.replace("\n", " ") for column in columns]
    lines = {row: ", ".join(f"{n} {v}" for n, v in zip(names, told[row])) for row in cells}
    return as_picture(figure, "\n".join(f"{row}: {text}" for row, text in lines.items()))


def name_axes(axes, rows: list[str], columns: list[str], title: str):
    """Names of columns above, names of rows at the side, the first row on top."""
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(title, color=INK, fontsize=10, loc="left")


def draw_cell(axes, x: int, y: int, value, good: str, bad: str):
    """A full box, or an empty one with a frame: whoever sees no colours sees the difference."""
    colour, word = (HAVE, good) if value else (LACK, bad)
    axes.add_patch(_box(x - 0.46, y - 0.4, colour, filled=bool(value)))
    ink = "white" if value else colour
    axes.text(x, y, word, ha="center", va="center", color=ink, fontsize=9)


def _box(x: float, y: float, colour: str, filled: bool):
    from matplotlib.patches import FancyBboxPatch

    place, look = (x + 0.04, y + 0.04), {"boxstyle": "round,pad=0.04", "edgecolor": colour}
    inside = colour if filled else "none"
    return FancyBboxPatch(place, 0.84, 0.72, facecolor=inside, linewidth=1.5, **look)


def grid_text(cells: dict, columns: list[str], good: str, bad: str) -> str:
    words = {
        name: ", ".join(f"{c} {good if v else bad}" for c, v in zip(columns, values))
        for name, values in cells.items()
    }
    return "\n".join(f"{name}: {told}" for name, told in words.items())


def placement(seen: dict) -> Picture:
    """Which device holds a copy of which variable, for every group of variables that an experiment observed."""
    rows = alike(seen)
    columns = list(dict.fromkeys(place for where in rows.values() for place in where))
    cells = {row: [column in where for column in columns] for row, where in rows.items()}
    drawn = grid(cells, [column.replace(" ", "\n", 1) for column in columns], "copy", "none")
    return Picture(drawn.png, placement_text(rows))


def alike(seen: dict) -> dict[str, list[str]]:
    """One row for all variables of a group that are in the same places: 'loaded: 4 variables'."""
    rows = {}
    for label, group in seen.items():
        for where in dict.fromkeys(map(tuple, group.values())):
            names = [name for name, places in group.items() if tuple(places) == where]
            rows[
                f"{label}: {', '.join(names) if len(names) < 4 else f'{len(names)} variables'}"
            ] = list(where)
    return rows


def placement_text(rows: dict[str, list[str]]) -> str:
    """Counts, not device names: the same sentence on CPUs, GPUs and TPUs."""
    return "\n".join(
        f"{row}: {len(where)} {'copy' if len(where) == 1 else 'copies'}"
        for row, where in rows.items()
    )


def where_variables_live(experiment, setup) -> Picture:
    """Draws where the variables live that an experiment observed, whatever else came of it."""
    return placement(recall([(experiment, setup)])[0].seen)


def timeline(lines: dict[str, list[float]], event: int, event_name: str, axis: str) -> Picture:
    """Values over steps, with one moment marked, for what a restart keeps and what it forgets."""
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
    return as_picture(figure, timeline_text(lines, event, event_name))


def timeline_text(lines: dict, event: int, event_name: str) -> str:
    told = {name: (values[event - 1], values[event]) for name, values in lines.items()}
    return "\n".join(
        f"{name}: {a:.2f} before {event_name}, {b:.2f} after" for name, (a, b) in told.items()
    )
