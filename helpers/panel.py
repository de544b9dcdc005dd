"""The panel: four dropdowns, a Run button, a verdict card, a figure and the history of this session's runs.

Core widgets only, so that it works in JupyterLab, Notebook 7, Voila and Colab, under ipywidgets 7.7 and 8.
"""

import html
import re

from . import figures, formats, runtime, strategies, workers
from .experiments import recall
from .refusals import Refused
from .setups import PARAMETERS, Setup
from .verdicts import Verdict, verdicts

LABELS = {
    "strategy": "Strategy",
    "devices": "Devices",
    "save_format": "Save format",
    "keras": "Keras",
}
LOOK = {
    "raises": ("✖", "--jp-error-color1", "#c62828"),
    "silent": ("▲", "--jp-warn-color1", "#b26a00"),
    "works": ("✔", "--jp-success-color1", "#2e7d32"),
    "unavailable": ("○", "--jp-border-color0", "#757575"),
}
STYLE = """<style>
.clinic-card{border:1px solid var(--jp-border-color1,#bdbdbd);border-left:6px solid var(--clinic-colour,#757575);
border-radius:4px;padding:.5em .9em;margin:.3em 0;background:var(--jp-layout-color1,transparent);
color:var(--jp-ui-font-color1,inherit);font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;line-height:1.45}
.clinic-card h3{font-size:1em;margin:0 0 .2em}.clinic-card p{margin:.15em 0;overflow-wrap:anywhere}
.clinic-card code,.clinic-runs code{background:var(--jp-layout-color2,rgba(127,127,127,.18));color:inherit;padding:0 .25em}
.clinic-runs{border-collapse:collapse;font-size:12px;color:var(--jp-ui-font-color1,inherit)}
.clinic-runs th,.clinic-runs td{text-align:left;line-height:1.3;
padding:.15em .6em .15em 0;border-bottom:1px solid var(--jp-border-color2,#ccc)}
</style>"""
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
    """The card reads well as bare headings and paragraphs too, where a viewer drops its style."""
    icon, variable, colour = LOOK.get(found[0].outcome, LOOK["raises"])
    title = html.escape(f"{icon} {found[0].outcome}: {headline(mode, found)}")
    body = "".join(
        f"<p><b>{each.subject}</b>: {each.outcome} <i>({each.evidence})</i> <code>{html.escape(each.says)}</code></p>"
        for each in found
    )
    role = "role='status' aria-live='polite'" if live else "role='group'"
    return (
        f"{STYLE}<div class='clinic-card' {role} aria-label='Verdict' data-clinic-outcome='{found[0].outcome}' "
        f"style='--clinic-colour:var({variable},{colour})'><h3>{title}</h3>"
        f"<p>{html.escape(str(found[0].setup))}</p>{body}<p><b>Fix</b>: {with_code(mode.fix)}</p></div>"
    )


def history_html(runs: list[list[Verdict]]) -> str:
    """A small table of this session's runs, the latest first."""
    if not runs:
        return ""
    head = "".join(f"<th scope='col'>{name}</th>" for name in HISTORY)
    numbered = reversed(list(enumerate(runs, 1)))
    body = "".join(history_row(number, found) for number, found in numbered)
    return f"<table class='clinic-runs' aria-label='Runs in this session'><tr>{head}</tr>{body}</table>"


def history_row(number: int, found: list[Verdict]) -> str:
    setup = found[0].setup
    cells = [number, f"{setup.strategy} x{setup.devices}", setup.save_format, setup.keras]
    cells += [each.outcome for each in found] + [found[0].evidence]
    return f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in cells)}</tr>"


def keras_note(setup: Setup) -> str:
    """Which Keras this kernel holds, and how to change it for the whole notebook."""
    other = 5 - setup.keras
    return (
        f"This kernel holds Keras {setup.keras}. Keras {other} runs in a process of its own; to switch the whole "
        f"notebook, set <code>keras = {other}</code> in the parameters cell, restart the kernel and run all cells."
    )


class Panel:
    """Controls on the left, what came of them on the right; `click` is the whole of what the button does."""

    def __init__(self, mode, broken, fixed, setup):
        self.mode, self.experiments, self.runs = mode, {"broken": broken, "fixed": fixed}, []
        self.controls = make_controls(setup)
        self.button, self.status, self.card, self.figure, self.history = make_displays()
        self.controls["strategy"].observe(self.offer_devices, "value")
        self.button.on_click(self.click)
        self.say("Choose a setup and press Run.", "ready")
        self.root = arrange(self, keras_note(setup))

    def offer_devices(self, change):
        """A strategy offers its own device counts; the chosen one is kept where it can be."""
        counts = strategies.TABLE[change["new"]].counts
        kept = self.controls["devices"].value
        self.controls["devices"].options = counts
        self.controls["devices"].value = kept if kept in counts else counts[0]

    def say(self, words: str, state: str):
        marks = f"role='status' aria-live='polite' data-clinic-state='{state}' data-clinic-runs='{len(self.runs)}'"
        self.status.value = f"<span {marks}>{html.escape(words)}</span>"

    def click(self, _=None):
        self.button.disabled = True
        try:
            setup = Setup(**{name: self.controls[name].value for name in PARAMETERS})
            self.say(f"Running {setup}{where_it_runs(setup)} …", "running")
            self.show(verdicts(self.experiments, [setup]))
        except Refused as reason:
            self.say(str(reason), "refused")
        finally:
            self.button.disabled = False

    def show(self, found: list[Verdict]):
        self.runs.append(found)
        self.card.value = card_html(self.mode, found, live=True)
        self.figure.value = figures.placement(seen_by(found)).as_html() if seen_by(found) else ""
        self.history.value = history_html(self.runs)
        self.say(f"Done: {found[0].setup}.", "done")


def where_it_runs(setup: Setup) -> str:
    place = workers.place(setup)
    if place is None:
        return ""
    return " in worker processes" if place[0] else " in a process of its own"


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


def with_code(text: str) -> str:
    """Escaped text in which `backticks` mark code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def make_controls(setup: Setup) -> dict:
    import ipywidgets

    options = {
        "strategy": list(strategies.TABLE),
        "devices": strategies.TABLE[setup.strategy].counts,
        "save_format": list(formats.TABLE),
        "keras": runtime.GENERATIONS,
    }
    made = {}
    for name, values in options.items():
        made[name] = ipywidgets.Dropdown(
            options=values, value=getattr(setup, name), description=LABELS[name]
        )
        made[name].style.description_width = "7em"
        made[name].layout.width = "auto"
        made[name].add_class(f"clinic-{name}")
    return made


def make_displays() -> list:
    import ipywidgets

    button = ipywidgets.Button(
        description="Run", button_style="primary", tooltip="Run the experiment"
    )
    named = {"clinic-run": button}
    named |= {
        f"clinic-{name}": ipywidgets.HTML() for name in ("status", "verdict", "figure", "history")
    }
    for name, widget in named.items():
        widget.add_class(name)
    return list(named.values())


def arrange(panel: Panel, note: str):
    """Two columns that fold into one when the window is narrow."""
    import ipywidgets

    about = ipywidgets.HTML(f"<small style='line-height:1.4;display:block'>{note}</small>")
    left = ipywidgets.VBox(
        [*panel.controls.values(), panel.button, panel.status, about, panel.history]
    )
    right = ipywidgets.VBox([panel.card, panel.figure])
    columns = ipywidgets.Layout(
        grid_template_columns="repeat(auto-fit, minmax(min(320px, 100%), 1fr))", grid_gap="4px 18px"
    )
    root = ipywidgets.GridBox([left, right], layout=columns)
    root.add_class("clinic-panel")
    return root


def panel(mode, broken, fixed, setup) -> Panel:
    """Shows the verdict of this notebook's setup as card and picture of their own, then the live controls.

    The first two can be read where no kernel runs; viewers that know no widgets show a sentence instead of the third.
    """
    from IPython.display import display

    found = verdicts({"broken": broken, "fixed": fixed}, [setup], recall)
    display({"text/plain": card_text(mode, found), "text/html": card_html(mode, found)}, raw=True)
    if seen_by(found):
        display(figures.placement(seen_by(found)))
    made = Panel(mode, broken, fixed, setup)
    show_widget(made.root)
    return made


def show_widget(root):
    """The widget with a sentence for viewers without a kernel; its own fallback would be the widget's repr."""
    import sys

    from IPython.display import display

    if "google.colab" in sys.modules:
        return display(root)
    view = {"version_major": 2, "version_minor": 0, "model_id": root.model_id}
    words = {"text/plain": NOTE, "text/html": f"<p><em>{NOTE}</em></p>"}
    display({**words, "application/vnd.jupyter.widget-view+json": view}, raw=True)
