"""The atlas: every recorded verdict as one heat map, modes by setups, with filters and with the same in words."""

import html
import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import catalog, formats, records, sources, strategies
from .refusals import Refused
from .workers import write_whole

COLOURS = {
    "raises": "#b3261e",
    "silent": "#8f5400",
    "works": "#2f7f5f",
    "hangs": "#6750a4",
    "crashes": "#6750a4",
    "unavailable": "#6e6e6e",
    "differs": "#33618d",
    "": "#6e6e6e",
}
FILTERS = {
    "document": "Document",
    "strategy": "Strategy",
    "runtime": "Runtime",
    "format": "Save format",
}
PLACES = [(row.name, count) for row in strategies.ROWS for count in row.counts]
STYLE = """<style>
.clinic-atlas{border-collapse:separate;border-spacing:2px;font:12px/1.4 system-ui,sans-serif}
.clinic-atlas caption{text-align:left;font-size:14px;padding:.4em 0}
.clinic-atlas th{text-align:left;font-weight:500;padding:.1em .5em}
.clinic-atlas tbody{white-space:nowrap}
.clinic-atlas td a{display:block;min-width:5.2em;padding:.15em .3em;border-radius:3px;
color:#fff;text-align:center;text-decoration:none}
.clinic-atlas td a:focus,.clinic-atlas td a:hover{outline:2px solid currentColor;text-decoration:underline}
</style>"""
SCRIPT = """<script>
const chosen = name => document.querySelector(`[data-filter=${name}]`).value;
function filter() {
  for (const row of document.querySelectorAll('.clinic-atlas tbody tr'))
    row.hidden = ['document', 'runtime'].some(name => chosen(name) && row.dataset[name] !== chosen(name));
  for (const cell of document.querySelectorAll('.clinic-atlas [data-strategy]'))
    cell.hidden = Boolean(chosen('strategy') && cell.dataset.strategy !== chosen('strategy'));
  for (const link of document.querySelectorAll('.clinic-atlas td a')) {
    const outcomes = JSON.parse(link.dataset.outcomes), any = Object.values(outcomes);
    const same = any.every(word => word === any[0]) ? any[0] : 'differs';
    const word = outcomes[chosen('format')] || (outcomes['any'] || (chosen('format') ? '' : same));
    link.textContent = word || '–';
    link.style.background = COLOURS[word];
  }
}
document.querySelectorAll('[data-filter]').forEach(each => each.addEventListener('change', filter));
filter();
</script>"""


@dataclass(frozen=True)
class Row:
    """One mode on one runtime: for each place, what comes of each save format."""

    mode: object
    runtime: str
    outcomes: dict


def rows(chosen: dict | None = None) -> list[Row]:
    """One row for each mode and each runtime that has recorded it, less what the filters leave out."""
    chosen = chosen or {}
    kept = [records.read(name) for name in records.RUNTIMES]
    found = [
        Row(mode, record["runtime"], outcomes_of(mode, record, chosen))
        for mode in catalog.modes()
        for record in kept
        if record and mode.id in record["modes"]
    ]
    return [row for row in found if all(fits(row, *each) for each in chosen.items())]


def fits(row: Row, name: str, value: str) -> bool:
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


def summary(outcomes: dict) -> str:
    """The one outcome of all formats, or that they differ."""
    words = list(dict.fromkeys(outcomes.values()))
    return words[0] if len(words) == 1 else "differs" if words else ""


def missing() -> list[str]:
    """In words, which runtimes nobody has recorded, and the command that does it."""
    return [
        f"{name}: not recorded yet; on such a machine run: clinic record --keras {name[-1]}"
        for name in records.RUNTIMES
        if not records.path_of(name).exists()
    ]


def places_of(listed: list[Row]) -> list[tuple]:
    return [place for place in PLACES if any(place in row.outcomes for row in listed)]


# In words


def sentences(listed: list[Row]) -> list[str]:
    """One line for each row: where the broken code raises, is silent, works."""
    lines = []
    for row in listed:
        groups = {}
        for place, outcomes in row.outcomes.items():
            for kept_as, outcome in outcomes.items():
                groups.setdefault(outcome, {}).setdefault(place, []).append(kept_as)
        told = [f"{word} under {', '.join(named(places))}" for word, places in groups.items()]
        lines.append(f"{row.mode.id} {row.mode.slug}, {row.runtime}: {'; '.join(told)}")
    return lines


def named(places: dict) -> list[str]:
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


def table(listed: list[Row], where: str) -> str:
    """The heat map as HTML; `where` is the path from the page to the notebooks."""
    places = places_of(listed)
    head = "".join(
        f"<th scope='col' data-strategy='{name}'>{name} x{count}</th>" for name, count in places
    )
    body = "".join(row_html(row, places, where) for row in listed)
    return (
        f"{STYLE}<table class='clinic-atlas'><caption>What becomes of the broken code. Each cell leads to its notebook."
        f"</caption><thead><tr><th scope='col'>mode</th><th scope='col'>runtime</th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def row_html(row: Row, places: list[tuple], where: str) -> str:
    link = html.escape(where + Path(row.mode.notebook).name, quote=True)
    title = html.escape(row.mode.title, quote=True)
    cells = "".join(cell_html(row, place, link) for place in places)
    return (
        f"<tr data-document='{html.escape(row.mode.document)}' data-runtime='{row.runtime}'>"
        f"<th scope='row'><a href='{link}' title='{title}'>{row.mode.id} {row.mode.slug}</a></th>"
        f"<td>{row.runtime}</td>{cells}</tr>"
    )


def cell_html(row: Row, place: tuple, link: str) -> str:
    outcomes = row.outcomes.get(place, {})
    word = summary(outcomes)
    told = ", ".join(f"{name}: {outcome}" for name, outcome in outcomes.items()) or "not recorded"
    title = html.escape(f"{row.mode.id} {place[0]} x{place[1]}, {told}", quote=True)
    return (
        f"<td data-strategy='{place[0]}'><a href='{link}' title='{title}' style='background:{COLOURS[word]}' "
        f"data-outcomes='{html.escape(json.dumps(outcomes), quote=True)}'>{word or '–'}</a></td>"
    )


def options(listed: list[Row]) -> dict[str, list[str]]:
    """What each filter offers; the empty choice leaves nothing out."""
    return {
        "document": ["", *dict.fromkeys(row.mode.document for row in listed)],
        "strategy": ["", *dict.fromkeys(name for name, _ in places_of(listed))],
        "runtime": ["", *dict.fromkeys(row.runtime for row in listed)],
        "format": ["", *formats.TABLE],
    }


# As a page


def page(where: str) -> str:
    """The atlas as one file without a server: a heat map, filters that need no network, and the same in words."""
    unknown = "".join(f"<li>{html.escape(line)}</li>" for line in missing())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        "<meta name='color-scheme' content='light dark'><title>Strategy Clinic: the atlas</title>"
        "<body style='font-family:system-ui,sans-serif;margin:1.5em;background:Canvas'><main><h1>What breaks where</h1>"
        f"{explorer_html(where)}<h2>Runtimes without a record</h2><ul>{unknown}</ul></main></body></html>\n"
    )


def explorer_html(where: str) -> str:
    """The table with filters that need neither a server nor a kernel, and the same in words."""
    listed = rows()
    filters = "".join(filter_html(*each) for each in options(listed).items())
    words = "".join(f"<li>{html.escape(line)}</li>" for line in sentences(listed))
    return (
        f"<p class='clinic-filters'>{filters}</p><div style='overflow-x:auto' tabindex='0' role='region' aria-label='Heat map'>"
        f"{table(listed, where)}</div><details><summary>The same in words</summary><ul>{words}</ul></details>"
        f"<script>const COLOURS = {json.dumps(COLOURS)};</script>{SCRIPT}"
    )


def filter_html(name: str, values: list[str]) -> str:
    listed = "".join(
        f"<option value='{html.escape(v)}'>{html.escape(v or 'all')}</option>" for v in values
    )
    return f"<label>{FILTERS[name]} <select data-filter='{name}'>{listed}</select></label> "


def write(path: Path):
    """Links are relative, so the page works from wherever it lies beside the notebooks."""
    if not rows():
        raise Refused("Nothing has been recorded yet; run: clinic record")
    where = os.path.relpath(sources.NOTEBOOKS, path.resolve().parent)
    write_whole(path, page(f"{Path(where).as_posix()}/"))


# In a notebook


def picture():
    """The whole atlas at a glance; modes down, setups across."""
    from matplotlib.patches import Rectangle

    from . import figures

    listed = rows()
    places = places_of(listed)
    figure, axes = figures.canvas(2.6 + 0.5 * len(places), 1.2 + 0.19 * len(listed))
    for y, row in enumerate(listed):
        for x, place in enumerate(places):
            word = summary(row.outcomes.get(place, {}))
            axes.add_patch(Rectangle((x - 0.45, y - 0.42), 0.9, 0.84, color=COLOURS[word]))
            axes.text(x, y, word[:1] or "–", color="white", fontsize=7, ha="center", va="center")
    names = [f"{row.mode.id}, Keras {row.runtime[-1]}" for row in listed]
    axes.set_yticks(range(len(listed)), names, fontsize=7)
    labels = [f"{name.replace('_', ' ')} x{count}" for name, count in places]
    axes.set_xticks(range(len(places)), labels, rotation=60, ha="left", fontsize=7)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_ylim(len(listed) - 0.5, -0.5)
    return figures.picture(figure, "\n".join(sentences(listed)))


def explorer():
    """Four dropdowns above the table; cells lead to their notebooks."""
    import ipywidgets

    from .panel import show_widget

    shown = ipywidgets.HTML()
    boxes = {
        name: ipywidgets.Dropdown(
            options=[(value or "all", value) for value in values], description=FILTERS[name]
        )
        for name, values in options(rows()).items()
    }

    def draw(_=None):
        shown.value = table(rows({name: box.value for name, box in boxes.items()}), "")

    for box in boxes.values():
        box.observe(draw, "value")
    draw()
    show_widget(ipywidgets.VBox([ipywidgets.HBox(list(boxes.values())), shown]))
    return boxes, shown


def show_missing():
    print("\n".join(missing()) or "every runtime has been recorded")
