"""The panel: four dropdowns, a Run button, a verdict card, a figure and the history of this session's runs.

Core widgets only, so that it works in JupyterLab, Notebook 7, Voila and Colab, under ipywidgets 7.7 and 8.
"""

from ..base.errors import UserError
from ..base.templates import from_template
from ..experiments import workers
from ..experiments.experiment import recall
from ..experiments.verdicts import Verdict, verdicts
from ..setups import parameters, strategies
from ..setups.parameters import PARAMETERS, Setup
from . import figures
from .cards import card_html, card_text, history_html, keras_note, seen_by, show_widget

LABELS = {
    "strategy": "Strategy",
    "devices": "Devices",
    "save_format": "Save format",
    "keras": "Keras",
}


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
        self.status.value = from_template(
            "panel/templates/status.html", words=words, state=state, runs=len(self.runs)
        )

    def click(self, _=None):
        self.button.disabled = True
        try:
            setup = Setup(**{name: self.controls[name].value for name in PARAMETERS})
            self.say(f"Running {setup}{where_it_runs(setup)} …", "running")
            self.show(verdicts(self.experiments, [setup]))
        except UserError as reason:
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


def make_controls(setup: Setup) -> dict:
    import ipywidgets

    options = parameters.choices() | {"devices": strategies.TABLE[setup.strategy].counts}
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

    about = ipywidgets.HTML(from_template("panel/templates/note.html", note=note))
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
