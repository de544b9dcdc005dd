"""The atlas: every recorded verdict as one heat map, modes by setups, with filters and with the same in words."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..base.files import write_whole
from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..modes import registry
from ..modes.failure_mode import DOCUMENTS
from ..setups import formats, strategies
from . import store, versions_table

FILTERS = {
    "document": "Document",
    "strategy": "Strategy",
    "runtime": "Runtime",
    "format": "Save format",
}
PLACES = [(row.name, count) for row in strategies.ROWS for count in row.counts]


@dataclass(frozen=True)
class AtlasRow:
    """One mode on one runtime: for each place, what comes of each save format."""

    mode: object
    runtime: str
    outcomes: dict


def atlas_rows(chosen: dict | None = None) -> list[AtlasRow]:
    """One row for each mode and each runtime that has recorded it, less what the filters leave out."""
    chosen = chosen or {}
    kept = [store.read_record(name) for name in store.RUNTIMES]
    found = [
        AtlasRow(mode, record["runtime"], outcomes_of(mode, record, chosen))
        for mode in registry.modes()
        for record in kept
        if record and mode.id in record["modes"]
    ]
    return [row for row in found if all(passes(row, *each) for each in chosen.items())]


def passes(row: AtlasRow, name: str, value: str) -> bool:
    facts = {"document": row.mode.document, "runtime": row.runtime}
    return not value or facts.get(name, value) == value


def outcomes_of(mode, record: dict, chosen: dict) -> dict:
    """For each place {format: outcome}; a mode to which the format does not matter has one outcome for any."""
    outcomes = {}
    for line in record["verdicts"]:
        place = (line["strategy"], line["devices"])
        if line["mode"] == mode.id and chosen.get("strategy") in (None, "", place[0]):
            kept_as = line["save_format"] if "save_format" in mode.switches else "any"
            if chosen.get("format") in (None, "", kept_as) or kept_as == "any":
                outcomes.setdefault(place, {})[kept_as] = line["broken"]
    return outcomes


def one_outcome(outcomes: dict) -> str:
    """The one outcome of all formats, or that they differ."""
    words = list(dict.fromkeys(outcomes.values()))
    return words[0] if len(words) == 1 else "differs" if words else ""


def unrecorded() -> list[str]:
    """In words, which runtimes nobody has recorded, and the command that does it."""
    return [
        f"{name}: not recorded yet; on such a machine run: clinic record --keras {name[-1]}"
        for name in store.RUNTIMES
        if not store.record_file(name).exists()
    ]


def places_of(listed: list[AtlasRow]) -> list[tuple]:
    return [place for place in PLACES if any(place in row.outcomes for row in listed)]


# In words


def atlas_sentences(listed: list[AtlasRow]) -> list[str]:
    """One line for each row: where the broken code raises, is silent, works."""
    lines = []
    for row in listed:
        groups = {}
        for place, outcomes in row.outcomes.items():
            for kept_as, outcome in outcomes.items():
                groups.setdefault(outcome, {}).setdefault(place, []).append(kept_as)
        told = [f"{word} under {', '.join(places_told(places))}" for word, places in groups.items()]
        lines.append(f"{row.mode.id} {row.mode.slug}, {row.runtime}: {'; '.join(told)}")
    return lines


def places_told(places: dict) -> list[str]:
    """'mirrored x2', with the formats in brackets where they are not all."""
    return [
        f"{name} x{count}"
        + (
            ""
            if set(kept) >= {"any"} or len(kept) == len(formats.TABLE)
            else f" ({', '.join(kept)})"
        )
        for (name, count), kept in places.items()
    ]


# As a table


def table(listed: list[AtlasRow], where: str) -> str:
    """The heat map as HTML; `where` is the path from the page to the notebooks."""
    return from_template("records/templates/atlas_table.html", **table_values(listed, where))


def table_values(listed: list[AtlasRow], where: str, ending: str = ".ipynb") -> dict:
    places = places_of(listed)
    return {"places": places, "rows": [row_values(row, places, where, ending) for row in listed]}


def row_values(row: AtlasRow, places: list[tuple], where: str, ending: str) -> dict:
    return {
        "mode": row.mode,
        "runtime": row.runtime,
        "link": where + Path(row.mode.notebook).with_suffix(ending).name,
        "cells": [cell_values(row, place) for place in places],
    }


def cell_values(row: AtlasRow, place: tuple) -> dict:
    outcomes = row.outcomes.get(place, {})
    told = ", ".join(f"{name}: {outcome}" for name, outcome in outcomes.items()) or "not recorded"
    return {
        "strategy": place[0],
        "title": f"{row.mode.id} {place[0]} x{place[1]}, {told}",
        "look": LOOKS[one_outcome(outcomes)],
        "outcomes": outcomes,
    }


def filter_options(listed: list[AtlasRow]) -> dict[str, list[str]]:
    """What each filter offers; the empty choice leaves nothing out."""
    return {
        "document": ["", *dict.fromkeys(row.mode.document for row in listed)],
        "strategy": ["", *dict.fromkeys(name for name, _ in places_of(listed))],
        "runtime": ["", *dict.fromkeys(row.runtime for row in listed)],
        "format": ["", *formats.TABLE],
    }


# As a page


def atlas_page(where: str) -> str:
    """The atlas as one file without a server: a heat map, filters that need no network, and the same in words."""
    values = explorer_values(where)
    return (
        from_template(
            "records/templates/atlas_page.html",
            unrecorded=unrecorded(),
            over_versions=versions_table.times_html(where),
            **values,
        )
        + "\n"
    )


def explorer_html(where: str, ending: str = ".ipynb") -> str:
    """The table with filters that need neither a server nor a kernel, and the same in words."""
    return from_template("records/templates/atlas_explorer.html", **explorer_values(where, ending))


def explorer_values(where: str, ending: str = ".ipynb") -> dict:
    listed = atlas_rows()
    return {
        "filters": filter_options(listed),
        "labels": FILTERS,
        "sentences": atlas_sentences(listed),
        "colours": {name: look.light for name, look in LOOKS.items()},
        **table_values(listed, where, ending),
    }


def write_atlas(path: Path):
    """Links are relative, so the page works from wherever it lies beside the notebooks."""
    if not atlas_rows():
        raise UserError("Nothing has been recorded yet; run: clinic record")
    where = os.path.relpath(files.notebooks(), path.resolve().parent)
    write_whole(path, atlas_page(f"{Path(where).as_posix()}/"))


# In a notebook


def picture():
    """The whole atlas at a glance; modes down, setups across."""
    from matplotlib.patches import Rectangle

    from ..panel import figures

    listed = atlas_rows()
    places = places_of(listed)
    figure, axes = figures.canvas(2.6 + 0.5 * len(places), 1.2 + 0.19 * len(listed))
    for y, row in enumerate(listed):
        for x, place in enumerate(places):
            word = one_outcome(row.outcomes.get(place, {}))
            axes.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, color=LOOKS[word].light))
            axes.text(x, y, word[:1] or "–", color="white", fontsize=7, ha="center", va="center")
    names = [f"{row.mode.id}, Keras {row.runtime[-1]}" for row in listed]
    axes.set_yticks(range(len(listed)), names, fontsize=7)
    labels = [f"{name.replace('_', ' ')} x{count}" for name, count in places]
    axes.set_xticks(range(len(places)), labels, rotation=60, ha="left", fontsize=7)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_ylim(len(listed) - 0.5, -0.5)
    return figures.as_picture(figure, "\n".join(atlas_sentences(listed)))


def explorer():
    """Four dropdowns above the table; cells lead to their notebooks."""
    import ipywidgets

    from ..panel.cards import show_widget

    shown = ipywidgets.HTML()
    boxes = {
        name: ipywidgets.Dropdown(
            options=[(DOCUMENTS.get(value, value) or "all", value) for value in values],
            description=FILTERS[name],
        )
        for name, values in filter_options(atlas_rows()).items()
    }

    def draw(_=None):
        shown.value = table(atlas_rows({name: box.value for name, box in boxes.items()}), "")

    for box in boxes.values():
        box.observe(draw, "value")
    draw()
    show_widget(ipywidgets.VBox([ipywidgets.HBox(list(boxes.values())), shown]))
    return boxes, shown


def over_versions():
    """Modes by versions of TensorFlow and Keras; every cell opens to the verdicts behind it."""
    return versions_table.OverVersions()


def show_missing():
    print("\n".join(unrecorded()) or "every runtime has been recorded")
