"""Verdicts as cards of text and HTML, and widgets with a sentence for viewers without a kernel."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..modes.failure_mode import FailureMode
from ..programs.run import Observations, cut
from ..programs.verdicts import Verdict
from ..setups.parameters import Setup

NOTE = "The controls need a running kernel: open this notebook in JupyterLab, Colab or Binder and run all cells."
HARMLESS = ("works", "unavailable")  # outcomes that need no fix


def card_text(mode: FailureMode, verdicts: list[Verdict], setup: str) -> str:
    lines = [f"{mode.name} under {setup}: {headline(mode, verdicts)}"]
    lines += [f"  {line}" for line in not_run(mode, verdicts)]
    for verdict in ran(verdicts):
        says = cut(verdict.says)
        line = f"  {verdict.subject}: {verdict.outcome} ({verdict.evidence}). {says}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def headline(mode: FailureMode, verdicts: list[Verdict]) -> str:
    outcomes = [verdict.outcome for verdict in verdicts]
    agrees = all(map(mode.agrees, verdicts))
    return headline_of(outcomes, agrees, mode.reason_against(verdicts[0].setup))


def headline_of(outcomes: list[str], agrees: bool, reason: str) -> str:
    """Returns in words what the outcomes of the broken and the fixed program say together.

    A reason says why the programs have no meaning under their setup.
    """
    if "unavailable" in outcomes:
        return "no program for this setup" if reason else "cannot run on this machine"
    if not agrees:
        return "not as declared"
    fails = outcomes[0] != "works"
    return "the failure shows, the fix works" if fails else "no failure under this setup"


def ran(verdicts: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.outcome != "unavailable"]


def not_run(mode: FailureMode, verdicts: list[Verdict]) -> list[str]:
    """Returns a sentence for each reason why programs have not run, with the programs unless it is all."""
    missing = [verdict for verdict in verdicts if verdict.outcome == "unavailable"]
    lines = []
    for says in dict.fromkeys(verdict.says for verdict in missing):
        subjects = [verdict.subject for verdict in missing if verdict.says == says]
        names = "" if len(subjects) == len(verdicts) else f"{' and '.join(subjects)}: "
        lines.append(names + why_not(mode, missing[0].setup, says))
    return lines


def why_not(mode: FailureMode, setup: Setup, says: str) -> str:
    """Returns why a program has not run, with the value that rules it out."""
    values = [each for each in (setup.strategy, setup.save_format) if each in mode.unavailable]
    what = f"Not run with {values[0]}" if values else "Not run"
    return f"{what}: {says.rstrip('.')}."


def card_html(mode: FailureMode, verdicts: list[Verdict], setup: str, live: bool = False) -> str:
    """Returns the card as HTML. A viewer that drops its style still shows headings and paragraphs."""
    return from_template(
        "panel/templates/card.html",
        look=LOOKS[verdicts[0].outcome],
        headline=headline(mode, verdicts),
        setup=setup,
        not_run=not_run(mode, verdicts),
        found=[replace(verdict, says=cut(verdict.says)) for verdict in ran(verdicts)],
        fix="" if verdicts[0].outcome in HARMLESS else mode.fix,
        live=live,
    )


def history_html(runs: list[list[Verdict]], parameters: Sequence[str]) -> str:
    """Returns a table of this session's runs, the latest first; of a save format only where something is saved."""
    saved = ["Saved as"] if "save_format" in parameters else []
    names = ["Run", "Strategy", *saved, "Keras", "Broken", "Fixed", "Evidence"]
    rows: list[list[Any]] = []
    for number, verdicts in enumerate(runs, 1):
        setup, outcomes = verdicts[0].setup, [verdict.outcome for verdict in verdicts]
        place = [f"{setup.strategy} x{setup.devices}", *[setup.save_format][: len(saved)]]
        rows.insert(0, [number, *place, setup.keras, *outcomes, verdicts[0].shown_evidence])
    return from_template("panel/templates/history.html", names=names, rows=rows) if rows else ""


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


def show_widget(root: Any, text: str = "", html: str = "") -> None:
    """Shows a widget; where no kernel runs, a text and a sentence that says so, in place of ipywidgets' repr."""
    from IPython.display import display

    if "google.colab" in sys.modules:
        display(root)
        return
    view = {"version_major": 2, "version_minor": 0, "model_id": root.model_id}
    fallback = from_template("panel/templates/without_kernel.html", note=NOTE)
    words = {"text/plain": "\n".join(filter(None, [text, NOTE])), "text/html": html + fallback}
    display({**words, "application/vnd.jupyter.widget-view+json": view}, raw=True)
