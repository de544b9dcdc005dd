"""Verdicts as cards of text and HTML."""

from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..experiments.verdicts import Verdict
from ..setups.parameters import Setup

HISTORY = ("Run", "Strategy", "Saved as", "Keras", "Broken", "Fixed", "Evidence")
NOTE = "The controls need a running kernel: open this notebook in JupyterLab, Colab or Binder and run all cells."


def card_text(mode, found: list[Verdict]) -> str:
    lines = [f"{mode.name} under {found[0].setup}: {headline(mode, found)}"]
    return "\n".join(
        lines
        + [
            f"  {each.subject}: {each.outcome} ({each.evidence}). {each.says}".rstrip()
            for each in found
        ]
    )


def headline(mode, found: list[Verdict]) -> str:
    if any(each.outcome == "unavailable" for each in found):
        return "cannot run here"
    if not all(mode.agrees(each) for each in found):
        return "not as declared"
    return (
        "the failure shows, the fix works"
        if found[0].outcome != "works"
        else "no failure under this setup"
    )


def card_html(mode, found: list[Verdict], live: bool = False) -> str:
    """The verdict as a card. Where a viewer drops its style, headings and paragraphs are left."""
    return from_template(
        "panel/templates/card.html",
        look=LOOKS[found[0].outcome],
        headline=headline(mode, found),
        setup=found[0].setup,
        found=found,
        fix=mode.fix,
        live=live,
    )


def history_html(runs: list[list[Verdict]]) -> str:
    """A small table of this session's runs, the latest first."""
    if not runs:
        return ""
    rows = [history_row(number, found) for number, found in enumerate(runs, 1)]
    return from_template("panel/templates/history.html", names=HISTORY, rows=rows[::-1])


def history_row(number: int, found: list[Verdict]) -> list:
    setup = found[0].setup
    cells = [number, f"{setup.strategy} x{setup.devices}", setup.save_format, setup.keras]
    return cells + [each.outcome for each in found] + [found[0].evidence]


def keras_note(setup: Setup) -> str:
    """Which Keras this kernel holds, and how to change it for the whole notebook."""
    other = setup.other_keras
    return (
        f"This kernel holds Keras {setup.keras}. Keras {other} runs in a process of its own; to switch the whole "
        f"notebook, set `keras = {other}` in the parameters cell, restart the kernel and run all cells."
    )


def seen_by(found: list[Verdict]) -> dict:
    """What the experiments observed; what all of them saw alike is shown once."""
    groups = {}
    for label in dict.fromkeys(label for each in found for label in each.seen):
        seen = {each.subject: each.seen[label] for each in found if label in each.seen}
        same = all(group == next(iter(seen.values())) for group in seen.values())
        groups |= (
            {label: next(iter(seen.values()))}
            if same
            else {f"{label}, {who}": group for who, group in seen.items()}
        )
    return groups


def show_widget(root):
    """Shows the widget, and a sentence where there is no kernel; ipywidgets itself would show its repr there."""
    import sys

    from IPython.display import display

    if "google.colab" in sys.modules:
        return display(root)
    view = {"version_major": 2, "version_minor": 0, "model_id": root.model_id}
    fallback = from_template("panel/templates/without_kernel.html", note=NOTE)
    words = {"text/plain": NOTE, "text/html": fallback}
    display({**words, "application/vnd.jupyter.widget-view+json": view}, raw=True)
