"""Verdicts as cards of text and HTML, and widgets with a sentence for viewers without a kernel."""

import sys
from dataclasses import replace
from typing import Any

from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..modes.failure_mode import FailureMode
from ..programs.run import Observations, cut
from ..programs.verdicts import Verdict

HISTORY = ("Run", "Strategy", "Saved as", "Keras", "Broken", "Fixed", "Evidence")
NOTE = "The controls need a running kernel: open this notebook in JupyterLab, Colab or Binder and run all cells."


def card_text(mode: FailureMode, verdicts: list[Verdict]) -> str:
    lines = [f"{mode.name} under {verdicts[0].setup}: {headline(mode, verdicts)}"]
    for verdict in verdicts:
        says = cut(verdict.says)
        line = f"  {verdict.subject}: {verdict.outcome} ({verdict.evidence}). {says}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def headline(mode: FailureMode, verdicts: list[Verdict]) -> str:
    outcomes = [verdict.outcome for verdict in verdicts]
    return headline_of(outcomes, all(map(mode.agrees, verdicts)))


def headline_of(outcomes: list[str], agrees: bool) -> str:
    """Returns in words what the outcomes of the broken and the fixed program say together."""
    if "unavailable" in outcomes:
        return "cannot run here"
    if not agrees:
        return "not as declared"
    fails = outcomes[0] != "works"
    return "the failure shows, the fix works" if fails else "no failure under this setup"


def card_html(mode: FailureMode, verdicts: list[Verdict], live: bool = False) -> str:
    """Returns the card as HTML. A viewer that drops its style still shows headings and paragraphs."""
    return from_template(
        "panel/templates/card.html",
        look=LOOKS[verdicts[0].outcome],
        headline=headline(mode, verdicts),
        setup=verdicts[0].setup,
        found=[replace(verdict, says=cut(verdict.says)) for verdict in verdicts],
        fix=mode.fix,
        live=live,
    )


def history_html(runs: list[list[Verdict]]) -> str:
    """Returns a table of this session's runs, the latest first."""
    rows: list[list[Any]] = []
    for number, verdicts in enumerate(runs, 1):
        setup, outcomes = verdicts[0].setup, [verdict.outcome for verdict in verdicts]
        place = [f"{setup.strategy} x{setup.devices}", setup.save_format, setup.keras]
        rows.insert(0, [number, *place, *outcomes, verdicts[0].evidence])
    return from_template("panel/templates/history.html", names=HISTORY, rows=rows) if rows else ""


def observations_of(verdicts: list[Verdict]) -> Observations:
    """Returns the observations of all runs under one label, with the experiment's name where they differ."""
    groups: Observations = {}
    runs = {verdict.subject: verdict.run.observations for verdict in verdicts}
    for label in dict.fromkeys(label for observations in runs.values() for label in observations):
        seen = {subject: runs[subject][label] for subject in runs if label in runs[subject]}
        first, *others = seen.values()
        if all(group == first for group in others):
            groups[label] = first
        else:
            groups |= {f"{label}, {subject}": group for subject, group in seen.items()}
    return groups


def show_widget(root: Any) -> None:
    """Shows a widget, and a sentence where no kernel runs, in place of ipywidgets' repr."""
    from IPython.display import display

    if "google.colab" in sys.modules:
        display(root)
        return
    view = {"version_major": 2, "version_minor": 0, "model_id": root.model_id}
    fallback = from_template("panel/templates/without_kernel.html", note=NOTE)
    words = {"text/plain": NOTE, "text/html": fallback}
    display({**words, "application/vnd.jupyter.widget-view+json": view}, raw=True)
