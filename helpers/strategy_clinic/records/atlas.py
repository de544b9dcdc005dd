"""The atlas: a heat map of all recorded verdicts, modes by setups, with filters and with the same in words."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError
from ..base.files import write_whole
from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..modes import registry
from ..modes.failure_mode import DOCUMENTS, FailureMode
from ..setups import formats, strategies
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
    """One mode on one runtime: for each place the outcome by save format, or by 'any' if the format does not matter."""

    mode: FailureMode
    runtime: str
    outcomes: dict[Place, dict[str, str]]

    @property
    def name(self) -> str:
        return f"{self.mode.id} {self.mode.slug}"


def atlas_rows(chosen: dict[str, str] | None = None) -> list[AtlasRow]:
    """Returns a row for each mode and each runtime that has recorded it, but for what the filters exclude."""
    chosen = {name: value for name, value in (chosen or {}).items() if value}
    records = [record for name in RUNTIMES if (record := read_record(name))]
    return [
        AtlasRow(mode, record.runtime, outcomes_of(mode, record, chosen))
        for mode in registry.modes()
        for record in records
        if mode.id in record.modes
        if chosen.get("document", mode.document) == mode.document
        if chosen.get("runtime", record.runtime) == record.runtime
    ]


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
    """Returns the outcome of all formats, or 'differs'; nothing where there is none."""
    words = set(outcomes.values())
    return words.pop() if len(words) == 1 else "differs" if words else ""


def places_of(rows: list[AtlasRow]) -> list[Place]:
    return [place for place in PLACES if any(place in row.outcomes for row in rows)]


def unrecorded() -> list[str]:
    """Returns a sentence for each runtime without a record, with the command that makes one."""
    return [
        f"{name}: not recorded yet; on such a machine run: clinic record --keras {name[-1]}"
        for name in RUNTIMES
        if not record_file(name).exists()
    ]


# In words


def atlas_sentences(rows: list[AtlasRow]) -> list[str]:
    """Returns a line for each row: where the broken code raises, is silent, works."""
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
        lines.append(f"{row.name}, {row.runtime}: {'; '.join(words)}")
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
        "colours": {name: look.light for name, look in LOOKS.items()},
        **table_values(rows, where, ending),
    }


def filter_options(rows: list[AtlasRow]) -> dict[str, list[str]]:
    """Returns the values of each filter; the empty one excludes nothing."""
    return {
        "document": ["", *dict.fromkeys(row.mode.document for row in rows)],
        "strategy": ["", *dict.fromkeys(name for name, _ in places_of(rows))],
        "runtime": ["", *dict.fromkeys(row.runtime for row in rows)],
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
            "runtime": row.runtime,
            "link": where + Path(row.mode.notebook).with_suffix(ending).name,
            "cells": [cell_values(row, place) for place in places],
        }
        for row in rows
    ]
    return {"places": places, "rows": values}


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
    """Returns the whole atlas as a picture: modes down, setups across."""
    from matplotlib.patches import Rectangle

    from ..panel import figures

    rows = atlas_rows()
    places = places_of(rows)
    figure, axes = figures.canvas(2.6 + 0.5 * len(places), 1.2 + 0.19 * len(rows))
    for y, row in enumerate(rows):
        for x, place in enumerate(places):
            word = one_outcome(row.outcomes.get(place, {}))
            axes.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, color=LOOKS[word].light))
            axes.text(x, y, word[:1] or "–", color="white", fontsize=7, ha="center", va="center")
    names = [f"{row.mode.id}, Keras {row.runtime[-1]}" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    labels = [f"{name.replace('_', ' ')} x{count}" for name, count in places]
    axes.set_xticks(range(len(places)), labels, rotation=60, ha="left", fontsize=7)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    return figures.as_picture(figure, "\n".join(atlas_sentences(rows)))


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
