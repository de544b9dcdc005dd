"""The map of failure modes, narrowed to words of a reader, to a document, or to a strategy."""

from pathlib import Path
from typing import Any

from ..base.templates import from_template
from ..modes.documents import DOCUMENTS
from ..modes.failure_mode import FailureMode
from ..modes.groups import grouped
from ..modes.kinds import how_it_fails
from ..modes.registry import modes as all_modes
from ..setups import strategies
from .cards import show_widget

HINT = "words of what you see, such as: restored predictions differ"


def matching(
    modes: list[FailureMode], words: str = "", document: str = "", strategy: str = ""
) -> list[FailureMode]:
    """Returns the modes with all these words, from this document, and with a symptom under this strategy."""
    return [
        mode
        for mode in modes
        if all(word in text_of(mode) for word in words.casefold().split())
        and document in ("", mode.document)
        and any(
            not strategy or not symptom.strategies or strategy in symptom.strategies
            for symptom in mode.symptoms
        )
    ]


def text_of(mode: FailureMode) -> str:
    """Returns all words of a mode's declaration that a reader may look for."""
    symptoms = [f"{symptom.raises} {symptom.says}" for symptom in mode.symptoms]
    return " ".join([mode.name, mode.slug, mode.title, mode.sees, *symptoms]).casefold()


def narrow() -> tuple[dict[str, Any], Any]:
    """Shows three controls above the modes that match them; returns the controls and the table."""
    import ipywidgets

    shown, modes = ipywidgets.HTML(), all_modes()
    boxes = {
        "words": ipywidgets.Text(description="You see", placeholder=HINT, tooltip=HINT),
        "document": choice("Document", {value: key for key, value in DOCUMENTS.items()}),
        "strategy": choice("Strategy", {name: name for name in strategies.TABLE}),
    }

    def draw(_: Any = None) -> None:
        found = matching(modes, **{name: box.value for name, box in boxes.items()})
        shown.value = map_html(found, len(modes))

    for name, box in boxes.items():
        box.observe(draw, "value")
        box.add_class(f"clinic-{name}")
    boxes["words"].layout.width = "auto"
    draw()
    show_widget(ipywidgets.VBox([*boxes.values(), shown]))
    return boxes, shown


def map_html(found: list[FailureMode], every: int) -> str:
    """Returns a table of some of all modes, by groups."""
    rows = [
        (group, [(mode, Path(mode.notebook).name, how_it_fails(mode)) for mode in modes])
        for group, modes in grouped(found)
    ]
    return from_template("panel/templates/map.html", groups=rows, count=len(found), every=every)


def choice(name: str, values: dict[str, str]) -> Any:
    import ipywidgets

    options = [("all", ""), *values.items()]
    return ipywidgets.Dropdown(options=options, value="", description=name)
