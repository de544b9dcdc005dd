"""What a page calls that lets readers predict what replicas hold before they see it."""

from ...base import files
from ...base.display import report
from ...inside.excerpt import without_comment
from ...modes.registry import mode_by_id
from ...panel.predictions import Predictions
from ...programs import run as programs
from ...programs.text import WRONG
from ...setups.parameters import Setup
from .page_tables import tables_of


class Page(Predictions):
    """The broken program of a mode without what is said about its lines, and the questions about its run."""

    def __init__(self, mode: str, devices: int, keras: int) -> None:
        setup = Setup("mirrored", devices, "keras", keras)
        programs.prepare()
        self.mode = mode_by_id(mode)
        self.text = without_remarks(files.program_text(mode, "broken"))
        super().__init__(tables_of(self.text, setup))

    def show(self) -> None:
        """Shows the program and the questions."""
        print(self.text, end="")
        report(f"{self.mode.name} predict | {self.asked()}", mode=self.mode.id, step="predict")

    def compare(self, answers: str) -> None:
        """Compares predictions, separated by commas, with the run; shows what replicas hold if there are any."""
        print(self.compared(answers.split(",")))
        if answers.strip(", "):
            print(f"\n{self.shown()}")


def ask(mode: str, devices: int, keras: int) -> Page:
    """Returns the questions about the broken program of a mode, which runs now; raises UserError if it cannot."""
    page = Page(mode, devices, keras)
    page.show()
    return page


def without_remarks(program: str) -> str:
    """Returns a program without the comments that tell which lines are wrong."""
    lines = (without_comment(line) if WRONG in line else line for line in program.splitlines())
    return "".join(f"{line}\n" for line in lines)
