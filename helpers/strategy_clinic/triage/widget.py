"""The field in which a notebook takes a pasted error."""

from typing import Any

from .answer_text import PASTE, card, empty_card
from .classify import triage


def box() -> tuple[Any, Any, Any]:
    """Shows a field for the error, a button, and the card of the answer, and returns these three widgets."""
    import ipywidgets

    from ..panel.cards import show_widget

    field = ipywidgets.Textarea(description="Error", placeholder=PASTE, tooltip=PASTE, rows=8)
    button = ipywidgets.Button(
        description="Which mode is it?", button_style="primary", tooltip="Triage the pasted error"
    )
    answer = ipywidgets.HTML()
    field.layout.width, button.layout.width = "auto", "max-content"
    for name, widget in {"error": field, "triage": button, "answer": answer}.items():
        widget.add_class(f"clinic-{name}")

    def show_answer(_: object) -> None:
        answer.value = card(triage(field.value)) if field.value.strip() else empty_card()

    button.on_click(show_answer)
    show_widget(ipywidgets.VBox([field, button, answer]))
    return field, button, answer
