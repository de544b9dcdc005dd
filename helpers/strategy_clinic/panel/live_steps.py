"""What replicas hold, below the panel: the tables follow the chosen setup as soon as a reader switches them on."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ..base.errors import UserError
from ..base.templates import from_template
from ..inside import text
from ..inside.excerpt import grouped
from ..inside.tables import Step, Tables
from ..setups import strategies
from ..setups.parameters import Setup
from .changed_lines import changed_lines

Look = Callable[[str, Setup], Tables]  # from the name of a program and a setup
BETWEEN_SIGNS = 0.25  # seconds, of progress
USUAL = 2.0  # seconds that the two runs of a program take on two devices
SERVERS = "The tables do not follow {}: its servers compute the steps, and what they hold is not looked into."
SWITCH = "Show what each replica holds"


class LiveSteps:
    """A switch, which program is shown, and which of its first steps. Nothing runs while the switch is off."""

    def __init__(self, subjects: Iterable[str], chosen: Callable[[], Setup], look: Look) -> None:
        """`chosen` returns the setup of the panel; `look` runs a program and returns its tables."""
        self.chosen, self.look = chosen, look
        self.known: dict[tuple[str, Setup], Tables] = {}
        self.tables: Tables | None = None
        self.switch, self.subject, self.step, self.progress = make_controls(list(subjects))
        self.status, self.shown = make_displays()
        for control in (self.switch, self.subject):
            control.observe(self.follow, "value")
        self.step.observe(self.draw, "value")
        self.root = arrange(self)

    def follow(self, _: Any = None) -> None:
        """Shows the tables of the chosen program and setup, which runs now unless it has run already."""
        self.tables = None
        self.say("")
        if self.switch.value:
            try:
                self.show(self.subject.value, self.chosen())
            except UserError as reason:
                self.say(str(reason))
        self.draw()

    def show(self, subject: str, setup: Setup) -> None:
        if "ps" in (strategies.TABLE[setup.strategy].tasks or {}):
            return self.say(SERVERS.format(setup.strategy))
        if (subject, setup) not in self.known:
            began = time.monotonic()
            self.known[subject, setup] = self.run(subject, setup, began)
            self.say(f"Its two runs took {time.monotonic() - began:.1f} seconds.")
        self.tables = self.known[subject, setup]
        self.step.max = max(1, len(self.tables.steps))
        self.step.value = place_of_first(self.tables)

    def run(self, subject: str, setup: Setup, began: float) -> Tables:
        """Returns the tables of a program, and shows progress until it has ended."""
        self.progress.layout.display = ""
        try:
            with ThreadPoolExecutor(1) as pool:
                return self.waited(pool.submit(self.look, subject, setup), began)
        finally:
            self.progress.layout.display = "none"

    def waited(self, result: Future[Tables], began: float) -> Tables:
        while not result.done():
            seconds = time.monotonic() - began
            self.progress.value = seconds / (seconds + USUAL)  # it slows down and never ends
            self.say(f"Running on several devices and on one … {seconds:.1f} seconds")
            wait([result], BETWEEN_SIGNS)
        return result.result()

    def draw(self, _: Any = None) -> None:
        tables, steps = self.tables, self.tables.steps if self.tables else ()
        step = steps[self.step.value - 1] if steps else None
        self.shown.value = steps_html(tables, step) if tables else ""

    def say(self, words: str) -> None:
        self.status.value = from_template("panel/templates/note.html", note=words)


def place_of_first(tables: Tables) -> int:
    """Returns the number of the step in which the runs part, or of the first one."""
    return tables.steps.index(tables.first[0]) + 1 if tables.first else 1


def steps_html(tables: Tables, step: Step | None) -> str:
    rows = step.rows if step else ()
    parts = {
        "groups": list(grouped(rows, tables)),
        "changed": changed_lines(tables),
        "words": list(text.legend_of(rows)),
    }
    return from_template(
        "panel/templates/live_steps.html", tables=tables, step=step, text=text, **parts
    )


def make_controls(subjects: list[str]) -> list[Any]:
    """Returns the switch, the choice of a program, the number of the step, and a bar that shows progress."""
    import ipywidgets

    controls = {
        "inside": ipywidgets.Checkbox(description=SWITCH, indent=False),
        "inside-program": ipywidgets.Dropdown(options=subjects, description="Program"),
        # Not a slider: its handle has no name for a screen reader.
        "inside-step": ipywidgets.BoundedIntText(1, min=1, max=1, description="Step"),
        "inside-progress": ipywidgets.FloatProgress(min=0, max=1),
    }
    for name, control in controls.items():
        control.layout.max_width = "100%"
        control.add_class(f"clinic-{name}")
    controls["inside-progress"].layout.display = "none"
    return list(controls.values())


def make_displays() -> tuple[Any, Any]:
    import ipywidgets

    status, shown = ipywidgets.HTML(), ipywidgets.HTML()
    shown.add_class("clinic-inside-steps")
    status.add_class("clinic-inside-status")
    return status, shown


def arrange(live: LiveSteps) -> Any:
    """Returns the controls in a row that breaks where a window is narrow, and the table of a step below it."""
    import ipywidgets

    row = ipywidgets.HBox([live.subject, live.step, live.progress])
    row.layout.flex_flow = "row wrap"
    return ipywidgets.VBox([live.switch, row, live.status, live.shown])
