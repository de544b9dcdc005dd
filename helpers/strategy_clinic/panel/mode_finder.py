"""The map of failure modes, narrowed to what a reader sees, to a document, or to a strategy."""

from pathlib import Path

from ..base.templates import from_template
from ..modes.failure_mode import DOCUMENTS, FailureMode
from ..modes.registry import modes as all_modes
from ..setups import strategies
from .cards import show_widget

HINT = "words of what you see, such as: restored predictions differ"


def matching(
    modes: list[FailureMode], words: str = "", document: str = "", strategy: str = ""
) -> list[FailureMode]:
    """Those that all the given words occur in, from this document, and with a symptom under this strategy."""
    return [
        mode
        for mode in modes
        if all(word in all_it_says(mode) for word in words.casefold().split())
        and document in ("", mode.document)
        and any(not strategy or shows(symptom, strategy) for symptom in mode.symptoms)
    ]


def all_it_says(mode: FailureMode) -> str:
    """All that a mode says of itself."""
    said = [f"{each.raises} {each.says}" for each in mode.symptoms]
    return " ".join([mode.name, mode.slug, mode.title, mode.sees, *said]).casefold()


def shows(symptom, strategy: str) -> bool:
    return not symptom.strategies or strategy in symptom.strategies


def as_table(found: list[FailureMode], every: int) -> str:
    rows = [(mode, Path(mode.notebook).name) for mode in found]
    return from_template("panel/templates/map.html", rows=rows, every=every)


def narrow():
    """Three controls above the modes that they leave; all of them are reached and changed by keyboard."""
    import ipywidgets

    shown, modes = ipywidgets.HTML(), all_modes()
    boxes = {
        "words": ipywidgets.Text(description="You see", placeholder=HINT, tooltip=HINT),
        "document": choice("Document", {value: key for key, value in DOCUMENTS.items()}),
        "strategy": choice("Strategy", {name: name for name in strategies.TABLE}),
    }

    def draw(_=None):
        chosen = {name: box.value for name, box in boxes.items()}
        shown.value = as_table(matching(modes, **chosen), len(modes))

    for name, box in boxes.items():
        box.observe(draw, "value")
        box.add_class(f"clinic-{name}")
    boxes["words"].layout.width = "auto"
    draw()
    show_widget(ipywidgets.VBox([*boxes.values(), shown]))
    return boxes, shown


def choice(name: str, values: dict[str, str]):
    import ipywidgets

    options = [("all", ""), *values.items()]
    return ipywidgets.Dropdown(options=options, value="", description=name)
