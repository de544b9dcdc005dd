"""The atlas: a heat map of all recorded verdicts, modes by setups, with filters and with the same in words."""

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError
from ..base.files import write_whole
from ..base.outcomes import LOOKS, Row
from ..base.templates import from_template
from ..modes import registry
from ..modes.documents import DOCUMENTS
from ..modes.failure_mode import FailureMode
from ..setups import formats, strategies
from ..sweep.pictures import sweep_html
from . import versions_table
from .store import RUNTIMES, Record, read_record, record_file

FILTERS = {
    "document": "Document",
    "strategy": "Strategy",
    "runtime": "Runtime",
    "format": "Save format",
}
Place = tuple[str, int]  # a strategy and its number of devices
PLACES: list[Place] = [(row.name, count) for row in strategies.ROWS for count in row.counts]


@dataclass(frozen=True)
class AtlasRow:
    """One mode on the runtimes where its outcomes are the same.

    For each place it has the outcome by save format, or by 'any' if the format does not matter. `in_part` are the runtimes
    that have recorded some of these outcomes only.
    """

    mode: FailureMode
    runtimes: tuple[str, ...]
    outcomes: dict[Place, dict[str, str]]
    in_part: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.mode.id} {self.mode.slug}"

    @property
    def runtimes_in_words(self) -> str:
        """Returns 'cpu, Keras 2 and 3; gpu, Keras 3 in part'."""
        kinds: dict[str, list[str]] = {}
        for runtime in sorted(self.runtimes):
            kind, _, keras = runtime.partition("-keras")
            part = " in part" if runtime in self.in_part else ""
            kinds.setdefault(kind, []).append(keras + part)
        return "; ".join(f"{kind}, Keras {' and '.join(keras)}" for kind, keras in kinds.items())


def atlas_rows(chosen: dict[str, str] | None = None) -> list[AtlasRow]:
    """Returns the rows of each recorded mode, but for what the filters exclude: one, or more where runtimes differ."""
    chosen = {name: value for name, value in (chosen or {}).items() if value}
    names = [name for name in RUNTIMES if chosen.get("runtime", name) == name]
    records = [record for name in names if (record := read_record(name))]
    modes = [
        each for each in registry.modes() if chosen.get("document", each.document) == each.document
    ]
    return [row for mode in modes for row in rows_of(mode, records, chosen)]


def rows_of(mode: FailureMode, records: list[Record], chosen: dict[str, str]) -> list[AtlasRow]:
    found: list[AtlasRow] = []
    for record in (each for each in records if mode.id in each.modes):
        outcomes = outcomes_of(mode, record, chosen)
        same = next((row for row in found if is_part(outcomes, row.outcomes)), None)
        if same is None:
            found.append(AtlasRow(mode, (record.runtime,), outcomes))
            continue
        in_part = (record.runtime,) if outcomes != same.outcomes else ()
        found[found.index(same)] = replace(
            same, runtimes=(*same.runtimes, record.runtime), in_part=(*same.in_part, *in_part)
        )
    return found


def is_part(part: dict[Place, dict[str, str]], whole: dict[Place, dict[str, str]]) -> bool:
    return all(outcomes.items() <= whole.get(place, {}).items() for place, outcomes in part.items())


def outcomes_of(
    mode: FailureMode, record: Record, chosen: dict[str, str]
) -> dict[Place, dict[str, str]]:
    outcomes: dict[Place, dict[str, str]] = {}
    for setup, verdict in record.of_mode(mode.id).items():
        name = setup.save_format if "save_format" in mode.switches else "any"
        if chosen.get("strategy", setup.strategy) == setup.strategy and (
            name == "any" or chosen.get("format", name) == name
        ):
            outcomes.setdefault((setup.strategy, setup.devices), {})[name] = verdict.broken
    return outcomes


def one_outcome(outcomes: dict[str, str]) -> str:
    """Returns the outcome of all formats that can run there, or 'differs'; nothing where there is none."""
    words = set(outcomes.values())
    words -= {"unavailable"} if len(words) > 1 else set()
    return words.pop() if len(words) == 1 else "differs" if words else ""


def places_of(rows: list[AtlasRow]) -> list[Place]:
    """Returns the places where a program of some row has run."""
    return [place for place in PLACES if any(has_run(row, place) for row in rows)]


def has_run(row: AtlasRow, place: Place) -> bool:
    return any(outcome != "unavailable" for outcome in row.outcomes.get(place, {}).values())


def unrecorded() -> list[str]:
    """Returns a sentence for each runtime without a record, with the command that makes one."""
    return [
        f"{name}: not recorded yet; on such a machine run: clinic record --keras {name[-1]}"
        for name in RUNTIMES
        if not record_file(name).exists()
    ]


# In words


def atlas_sentences(rows: list[AtlasRow]) -> list[str]:
    """Returns a line for each row: where the broken code raises, is wrong, works."""
    lines = []
    for row in rows:
        groups: dict[str, dict[Place, list[str]]] = {}
        for place, outcomes in row.outcomes.items():
            for name, outcome in outcomes.items():
                groups.setdefault(outcome, {}).setdefault(place, []).append(name)
        words = [
            f"{outcome} under {', '.join(place_in_words(*item) for item in places.items())}"
            for outcome, places in groups.items()
        ]
        lines.append(f"{row.name}, {row.runtimes_in_words}: {'; '.join(words)}")
    return lines


def place_in_words(place: Place, names: list[str]) -> str:
    """Returns 'mirrored x2', with the save formats in brackets unless it is all of them."""
    every = "any" in names or len(names) == len(formats.TABLE)
    return f"{place[0]} x{place[1]}" + ("" if every else f" ({', '.join(names)})")


# As a page


def write_atlas(path: Path) -> None:
    """Writes the atlas as one file; its links are relative, so it works wherever it lies beside the notebooks."""
    if not atlas_rows():
        raise UserError("Nothing has been recorded yet; run: clinic record")
    folder = os.path.relpath(files.notebooks(), path.resolve().parent)
    where = f"{Path(folder).as_posix()}/"
    page = from_template(
        "records/templates/atlas_page.html",
        unrecorded=unrecorded(),
        over_versions=versions_table.versions_html(where),
        sweep=sweep_html(lambda report: f"{where}../upstream/{report}.md", level=3),
        **explorer_values(where),
    )
    write_whole(path, page + "\n")


def explorer_html(where: str, ending: str = ".ipynb") -> str:
    """Returns the table with filters that need neither a server nor a kernel, and the same in words."""
    return from_template("records/templates/atlas_explorer.html", **explorer_values(where, ending))


def explorer_values(where: str, ending: str = ".ipynb") -> dict[str, Any]:
    rows = atlas_rows()
    return {
        "filters": filter_options(rows),
        "labels": FILTERS,
        "sentences": atlas_sentences(rows),
        "looks": {name: (look.icon, look.light) for name, look in LOOKS.items()},
        **table_values(rows, where, ending),
    }


def filter_options(rows: list[AtlasRow]) -> dict[str, list[str]]:
    """Returns the values of each filter; the empty one excludes nothing."""
    return {
        "document": ["", *dict.fromkeys(row.mode.document for row in rows)],
        "strategy": ["", *dict.fromkeys(name for name, _ in places_of(rows))],
        "runtime": ["", *dict.fromkeys(name for row in rows for name in row.runtimes)],
        "format": ["", *formats.TABLE],
    }


def table_html(rows: list[AtlasRow], where: str) -> str:
    """Returns the heat map; `where` is the path from its page to the notebooks."""
    return from_template("records/templates/atlas_table.html", **table_values(rows, where))


def table_values(rows: list[AtlasRow], where: str, ending: str = ".ipynb") -> dict[str, Any]:
    places = places_of(rows)
    values = [
        {
            "mode": row.mode,
            "runtimes": row.runtimes,
            "runtimes_in_words": row.runtimes_in_words,
            "alone": [other.mode for other in rows].count(row.mode) == 1,
            "link": where + Path(row.mode.notebook).with_suffix(ending).name,
            "cells": [cell_values(row, place) for place in places],
        }
        for row in rows
    ]
    heads = Counter(name for name, _ in places)
    return {"places": places, "heads": heads, "rows": values, "legend": legend(rows)}


def legend(rows: list[AtlasRow]) -> list[Row]:
    """Returns the looks of the cells that these rows have."""
    words = {one_outcome(row.outcomes.get(place, {})) for row in rows for place in places_of(rows)}
    return [look for name, look in LOOKS.items() if name in words]


def cell_values(row: AtlasRow, place: Place) -> dict[str, Any]:
    outcomes = row.outcomes.get(place, {})
    words = ", ".join(f"{name}: {outcome}" for name, outcome in outcomes.items()) or "not recorded"
    return {
        "strategy": place[0],
        "title": f"{row.mode.id} {place[0]} x{place[1]}, {words}",
        "look": LOOKS[one_outcome(outcomes)],
        "outcomes": outcomes,
    }


# In a notebook


def picture() -> Any:
    """Returns the whole atlas as a picture: modes down, setups across, and below what the signs stand for."""
    from ..panel import figures

    rows = atlas_rows()
    places = places_of(rows)
    figure, axes = figures.canvas(5.2 + 0.4 * len(places), 2.6 + 0.22 * len(rows))
    for y, row in enumerate(rows):
        for x, place in enumerate(places):
            draw_cell(axes, x, y, LOOKS[one_outcome(row.outcomes.get(place, {}))])
    axes.set_yticks(range(len(rows)), [label_of(row) for row in rows], fontsize=8)
    labels = [f"{name.replace('_', ' ')} x{count}" for name, count in places]
    axes.set_xticks(range(len(places)), labels, rotation=60, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    looks = legend(rows)
    for y, look in enumerate(looks, len(rows) + 1):
        draw_cell(axes, 0, y, look)
        words = ": ".join(filter(None, [look.name, look.about]))
        axes.text(0.7, y, words, color=figures.INK, fontsize=8, va="center")
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_ylim(len(rows) + len(looks) + 0.5, -0.5)
    return figures.as_picture(figure, "\n".join(atlas_sentences(rows)))


def label_of(row: AtlasRow) -> str:
    """Returns the name of a mode in words, and for which runtimes where they differ."""
    words = row.name.replace("_", " ")
    every = len(row.runtimes) == len([name for name in RUNTIMES if record_file(name).exists()])
    return words if every else f"{words} ({row.runtimes_in_words})"


def draw_cell(axes: Any, x: int, y: int, look: Row) -> None:
    from matplotlib.patches import Rectangle

    box = {"color": look.light} if look.name else {"fill": False, "edgecolor": "none"}
    axes.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, **box))
    ink = "white" if look.name else look.light
    axes.text(x, y, look.icon, color=ink, fontsize=8, ha="center", va="center")


def explorer() -> tuple[dict[str, Any], Any]:
    """Shows four dropdowns above the table; returns them and the table. Cells lead to their notebooks."""
    import ipywidgets

    from ..panel.cards import show_widget

    table = ipywidgets.HTML()
    boxes = {
        name: ipywidgets.Dropdown(
            options=[(DOCUMENTS.get(value, value) or "all", value) for value in values],
            description=FILTERS[name],
        )
        for name, values in filter_options(atlas_rows()).items()
    }

    def draw(_: Any = None) -> None:
        rows = atlas_rows({name: box.value for name, box in boxes.items()})
        table.value = table_html(rows, "")

    for box in boxes.values():
        box.observe(draw, "value")
    draw()
    show_widget(ipywidgets.VBox([ipywidgets.HBox(list(boxes.values())), table]))
    return boxes, table


def over_versions() -> versions_table.VersionsTable:
    """Returns modes by versions of TensorFlow and Keras; every cell opens to the verdicts behind it."""
    return versions_table.VersionsTable()


def show_missing() -> None:
    print("\n".join(unrecorded()) or "every runtime has been recorded")
