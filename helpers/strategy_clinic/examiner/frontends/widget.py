"""The notebook that examines a program of the reader's: a field to paste it into, and the marked-up program as the answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ...base.errors import UserError
from ...base.templates import from_template
from ...inside.html import card
from ...panel.cards import show_widget
from ..cells import Listing
from ..findings import Examination
from ..report import html, text
from ..runs import plan
from ..runs.mend import mend_if
from ..runs.program_spec import ProgramSpec
from ..runs.progress import Progress, Reporter
from . import program_input
from .ipython_magic import device_counts, print_progress

PROGRAM_HINT = "Paste a program, or the path of a .py or .ipynb file that this kernel can read."
SHOW = "Also show what each replica holds"
MEND = "Also try repairs in copies"
FILES = (".py", ".ipynb")
EMPTY = "examiner/frontends/templates/field.html"


def marked_up(
    program: str, devices: str = "1, 2", keras: int = 3, show: bool = False, repair: bool = False
) -> Examination:
    """Examines a program, given as text or as a path, and shows it with what was found.

    Shows what each replica held, and proven repairs, if asked for.
    """
    from IPython.display import display

    examination, listing = examine_given(program, devices, keras, print_progress, show, repair)
    display(html.as_display(examination, listing), raw=True)
    if examination.tables:
        display(html.tables_as_display(examination.tables), raw=True)
    return examination


def examine_given(
    given: str,
    devices: str,
    keras: int,
    report: Reporter,
    show: bool = False,
    repair: bool = False,
) -> tuple[Examination, Listing]:
    """Examines a text in an empty folder, a file with what is in its folder; returns its lines, too."""
    counts, path = device_counts(str(devices)), Path(given.strip()).expanduser().absolute()
    is_path = "\n" not in given.strip() and path.suffix in FILES
    with program_input.empty_folder() as empty:
        here = program_input.program_here(path.parent if is_path else empty, keras)
        program = program_given(given, path if is_path else None, here)
        examination = plan.examine(program, counts, report=report, show=show)
        mend_if(repair, f"*{MEND}*", program, examination, counts, report=report)
        return examination, program.listing or program_input.script_listing(path)


def program_given(text: str, path: Path | None, here: ProgramSpec) -> ProgramSpec:
    if path is None:
        return here.with_listing(program_input.pasted_listing(text))
    if path.suffix == ".py":
        return replace(here, arguments=(path.name,))
    return here.with_listing(program_input.notebook_listing(path, path.name))


# The field


class Box:
    """A field, two choices, a button, and below them the answer; `click` is the whole of what the button does."""

    def __init__(self) -> None:
        self.controls, self.button, self.status, self.answer = make_widgets()
        self.runs = 0
        self.examination: Examination | None = None
        self.answer.value = from_template(EMPTY)
        self.button.on_click(self.click)
        self.show_status("Paste a program and press the button.", "ready")

    def show_status(self, words: str, state: str = "running") -> None:
        self.status.value = from_template(
            "panel/templates/status.html", words=words, state=state, runs=self.runs
        )

    def report(self, step: Progress) -> None:
        self.show_status(text.progress_in_words(step))

    def click(self, _: object = None) -> None:
        self.button.disabled = True
        program, devices, keras, *also = (control.value for control in self.controls.values())
        try:
            self.examination, listing = examine_given(program, devices, keras, self.report, *also)
            answer = html.card_of_program(self.examination, listing, links="")
            tables = self.examination.tables
            self.answer.value = answer + (card(tables) if tables else "")
            self.runs += 1
            self.show_status("Done.", "done")
        except UserError as reason:
            self.answer.value = from_template(EMPTY)
            self.show_status(str(reason), "refused")
        finally:
            self.button.disabled = False


def program_box() -> Box:
    import ipywidgets

    box = Box()
    rows = [*box.controls.values(), box.button, box.status, box.answer]
    show_widget(ipywidgets.VBox(rows))
    return box


def make_widgets() -> tuple[dict[str, Any], Any, Any, Any]:
    """Returns the controls, the button, the status and the answer."""
    import ipywidgets

    controls = {
        "program": ipywidgets.Textarea(
            description="Program", placeholder=PROGRAM_HINT, tooltip=PROGRAM_HINT, rows=14
        ),
        "devices": ipywidgets.Text("1, 2", description="Devices", tooltip="such as 1, 2, 4"),
        "keras": ipywidgets.Dropdown(options=[2, 3], value=3, description="Keras"),
        "show": ipywidgets.Checkbox(description=SHOW, indent=False),
        "repair": ipywidgets.Checkbox(description=MEND, indent=False),
    }
    button = ipywidgets.Button(
        description="What is wrong with it?", button_style="primary", tooltip="Run and compare it"
    )
    status, answer = ipywidgets.HTML(), ipywidgets.HTML()
    controls["program"].layout.width, button.layout.width = "auto", "max-content"
    named = controls | {"examine": button, "status": status, "examined": answer}
    for name, widget in named.items():
        widget.add_class(f"clinic-{name}")
    return controls, button, status, answer
