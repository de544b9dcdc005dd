"""The notebook that examines a program of the reader's: a field to paste it into, and the marked-up program as the answer."""

from collections.abc import Callable
from pathlib import Path

from ...base.errors import UserError
from ...base.templates import from_template
from ...panel.cards import show_widget
from ..cells import Line, Listing
from ..recording import Examination
from ..report import html
from . import program_input
from .ipython_magic import counts_in, say_stage

PROGRAM_HINT = "Paste a program, or the path of a .py or .ipynb file that this kernel can read."
FILES = (".py", ".ipynb")


def marked_up(program: str, devices="1, 2", keras: int = 3) -> Examination:
    """Examines a program, given as text or as a path, and shows it with what was found."""
    from IPython.display import display

    answer = examine_given(program, devices, keras, say_stage)
    display(html.as_display(*answer), raw=True)
    return answer[0]


def examine_given(
    program: str, devices: str, keras: int, tell: Callable
) -> tuple[Examination, Listing, Line | None]:
    given = program.strip()
    counts = counts_in(str(devices))
    if "\n" not in given and given.endswith(FILES):
        return examine_file(Path(given).expanduser().absolute(), counts, keras, tell)
    listing = program_input.pasted_listing(program)
    with program_input.empty_folder() as folder:
        here = program_input.case_here(folder, keras)
        found, stuck = program_input.examine_listing(listing, here, counts, False, tell)
    return found, listing, stuck


def examine_file(path: Path, counts: list, keras: int, tell: Callable):
    """In a copy of its folder, with all that lies beside it."""
    here = program_input.case_here(path.parent, keras)
    if path.suffix == ".ipynb":
        listing = program_input.notebook_listing(path, path.name)
        found, stuck = program_input.examine_listing(listing, here, counts, False, tell)
        return found, listing, stuck
    script = here.but(words=(path.name,))
    found = program_input.examine_words_of(script, counts, False, tell)
    listing = program_input.script_listing(path)
    return found, listing, program_input.stuck_at(found, listing, str(path))


# The field


class Box:
    """A field, two choices, a button, and below them the answer; `click` is the whole of what the button does."""

    def __init__(self, program: str = ""):
        self.controls, self.button, self.status, self.answer = make_widgets(program)
        self.looks, self.found = 0, None
        self.answer.value = from_template("examiner/frontends/templates/field.html")
        self.button.on_click(self.click)
        self.say("Paste a program and press the button.", "ready")

    def say(self, words: str, state: str = "running"):
        self.status.value = from_template(
            "panel/templates/status.html", words=words, state=state, runs=self.looks
        )

    def click(self, _=None):
        self.button.disabled = True
        try:
            given = [self.controls[name].value for name in ("program", "devices", "keras")]
            self.found, *rest = examine_given(*given, self.say)
            self.answer.value = html.card_of_program(self.found, *rest, links="")
            self.looks += 1
            self.say("Done.", "done")
        except UserError as reason:
            self.answer.value = from_template("examiner/frontends/templates/field.html")
            self.say(str(reason), "refused")
        finally:
            self.button.disabled = False


def program_box(program: str = "") -> Box:
    import ipywidgets

    made = Box(program)
    rows = [*made.controls.values(), made.button, made.status, made.answer]
    show_widget(ipywidgets.VBox(rows))
    return made


def make_widgets(program: str) -> tuple:
    import ipywidgets

    controls = {
        "program": ipywidgets.Textarea(
            program, description="Program", placeholder=PROGRAM_HINT, tooltip=PROGRAM_HINT, rows=14
        ),
        "devices": ipywidgets.Text("1, 2", description="Devices", tooltip="such as 1, 2, 4"),
        "keras": ipywidgets.Dropdown(options=[2, 3], value=3, description="Keras"),
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
