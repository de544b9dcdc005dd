"""The panel: up to four dropdowns, a Run button, a verdict card, a figure, a history, and the programs for the chosen setup.

Core widgets only, so that it works in JupyterLab, Notebook 7, Voila and Colab, under ipywidgets 7.7 and 8.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base.errors import UserError
from ..base.templates import from_template
from ..modes.failure_mode import FailureMode
from ..programs.text import FIXED, WRONG
from ..programs.verdicts import Verdict
from ..setups import parameters, strategies
from ..setups.parameters import PARAMETERS, Setup
from . import choices, figures
from .cards import card_html, card_text, history_html, observations_of, show_widget
from .live_steps import LiveSteps, Look

NOTE = "Each run starts both programs as new Python processes, with the lines of the chosen setup."
LABELS = dict(zip(PARAMETERS, ("Strategy", "Devices", "Save format", "Keras")))


class Panel:
    """Controls on the left, the latest verdicts on the right; the button calls `click`."""

    def __init__(
        self,
        mode: FailureMode,
        setup: Setup,
        texts: Mapping[str, str],
        run: Callable[[Setup], list[Verdict]],
        look: Look | None = None,
    ) -> None:
        """`texts` are the broken and the fixed program; `run` returns the verdicts on both under a setup.

        `look` returns what the replicas of one of them hold, on a page that shows it.
        """
        self.mode, self.texts, self.run = mode, texts, run
        self.runs: list[list[Verdict]] = []
        self.setup, self.offered = setup, choices.offered(texts)
        self.count = choices.wanted_count(setup)
        self.is_between = False  # two setups, while a strategy changes the device counts
        self.controls = make_controls(setup, self.offered)
        self.button, self.status, self.card, self.figure, self.programs, self.history = (
            make_displays()
        )
        self.steps = LiveSteps(texts, self.chosen, look) if look else None
        self.observe()
        self.show_programs()
        self.button.on_click(self.click)
        self.say("Choose a setup and press Run.", "ready")
        self.root = arrange(self)

    def observe(self) -> None:
        """Lets the controls act when their values change, first those that change another one."""
        if "strategy" in self.controls:
            self.controls["strategy"].observe(self.offer_devices, "value")
            self.controls["devices"].observe(self.keep_count, "value")
        for control in self.controls.values():
            control.observe(self.show_programs, "value")
            control.observe(self.show_steps, "value")

    def keep_count(self, change: Any) -> None:
        self.count = change["new"]

    def offer_devices(self, change: Any) -> None:
        """Offers the device counts of the chosen strategy, and chooses the one that the reader has chosen last if it has it."""
        wanted, control = self.count, self.controls["devices"]
        self.is_between = True
        control.options = strategies.TABLE[change["new"]].counts
        control.value = choices.count_for(change["new"], wanted)
        self.count = wanted  # nobody chose what the options have changed
        self.is_between = False

    def chosen(self) -> Setup:
        """Returns the setup of the controls; raises a UserError while they are between two."""
        return self.setup.but(**{name: control.value for name, control in self.controls.items()})

    def show_programs(self, _: Any = None) -> None:
        with contextlib.suppress(UserError):  # while the device counts of a strategy change
            setup = self.chosen()
            self.programs.value = "".join(
                from_template(
                    "panel/templates/program.html",
                    name=f"{subject}.py",
                    text=choices.program_text(self.mode, setup, text),
                    marks=(WRONG, FIXED),
                )
                for subject, text in self.texts.items()
            )

    def show_steps(self, _: Any) -> None:
        if self.steps and not self.is_between:
            self.steps.follow()

    def say(self, words: str, state: str) -> None:
        self.status.value = from_template(
            "panel/templates/status.html", words=words, state=state, runs=len(self.runs)
        )

    def click(self, _: Any = None) -> None:
        """Runs both programs under the chosen setup and shows the verdicts."""
        self.button.disabled = True
        try:
            setup = self.chosen()
            self.say(f"Running {self.in_words(setup)} …", "running")
            self.show(self.run(setup))
        except UserError as reason:
            self.say(str(reason), "refused")
        finally:
            self.button.disabled = False

    def show(self, verdicts: list[Verdict]) -> None:
        """Shows the verdicts of a run, and the run as the latest of the history."""
        self.runs.append(verdicts)
        self.draw(verdicts)
        self.history.value = history_html(self.runs, self.offered)
        self.say(f"Done: {self.in_words(verdicts[0].setup)}.", "done")

    def draw(self, verdicts: list[Verdict]) -> None:
        """Shows verdicts as the card and the picture."""
        words = self.in_words(verdicts[0].setup)
        self.card.value = card_html(self.mode, verdicts, words, live=True)
        observations = observations_of(verdicts)
        self.figure.value = figures.placement(observations).as_html() if observations else ""

    def in_words(self, setup: Setup) -> str:
        return choices.in_words(setup, self.offered)


def make_controls(setup: Setup, offered: Sequence[str]) -> dict[str, Any]:
    import ipywidgets

    options = parameters.choices() | {"devices": list(strategies.TABLE[setup.strategy].counts)}
    controls = {}
    for name in offered:
        controls[name] = ipywidgets.Dropdown(
            options=options[name], value=getattr(setup, name), description=LABELS[name]
        )
        controls[name].style.description_width = "7em"
        controls[name].layout.width = "auto"
        controls[name].add_class(f"clinic-{name}")
    return controls


def make_displays() -> list[Any]:
    """Returns the button, and the places for status, verdict, figure, programs and history."""
    import ipywidgets

    button = ipywidgets.Button(
        description="Run", button_style="primary", tooltip="Run both programs"
    )
    displays = {"run": button}
    places = ("status", "verdict", "figure", "programs", "history")
    displays |= {name: ipywidgets.HTML() for name in places}
    for name, widget in displays.items():
        widget.add_class(f"clinic-{name}")
    return list(displays.values())


def arrange(panel: Panel) -> Any:
    """Returns the panel in two columns, which become one when the window is narrow; history and programs below them."""
    import ipywidgets

    about = ipywidgets.HTML(from_template("panel/templates/about.html", note=NOTE))
    controls = [*panel.controls.values(), panel.button, panel.status, about]
    columns = ipywidgets.Layout(
        grid_template_columns="repeat(auto-fit, minmax(min(320px, 100%), 1fr))", grid_gap="4px 18px"
    )
    right = ipywidgets.VBox([panel.card, panel.figure])
    top = ipywidgets.GridBox([ipywidgets.VBox(controls), right], layout=columns)
    top.add_class("clinic-columns")
    steps = [panel.steps.root] if panel.steps else []
    root = ipywidgets.VBox([top, *steps, panel.history, panel.programs])
    root.add_class("clinic-panel")
    return root


def show_panel(
    mode: FailureMode,
    texts: Mapping[str, str],
    verdicts: list[Verdict],
    run: Callable[[Setup], list[Verdict]],
    look: Look | None = None,
) -> Panel:
    """Shows the panel with the verdicts of this notebook's setup; viewers without widgets show these as a card and a picture."""
    panel = Panel(mode, verdicts[0].setup, texts, run, look)
    panel.draw(verdicts)
    words = panel.in_words(verdicts[0].setup)
    observations = observations_of(verdicts)
    text = [card_text(mode, verdicts, words)]
    text += [figures.placement(observations).alt] if observations else []
    html = card_html(mode, verdicts, words) + panel.figure.value
    show_widget(panel.root, "\n".join(text), html)
    return panel
