"""Questions about what replicas hold, which readers answer before they see it; the run says which answers are right."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import UserError
from ..base.templates import from_template
from ..inside import text
from ..inside.excerpt import excerpt_of, step_that_parts
from ..inside.tables import Row, Step, Tables
from ..inside.values import Value
from .cards import show_widget
from .live_steps import steps_html

NEAR = 0.01  # relative: predictions are made by head
NOBODY = "Nobody has predicted yet: answer first, then look."
COUNTS = "How many examples does {column} get in {step}?"
NUMBERS = "Which number does {column} hold in {step} ({label})?"


@dataclass(frozen=True)
class Question:
    """What is asked about one column of a row, and what the run holds there."""

    words: str
    held: float

    def answered(self, answer: str) -> str:
        """Returns a line that compares an answer with the run; raises UserError for one that is no number."""
        if not answer:
            return f"{self.words} The run holds {text.number(self.held)}."
        same = abs(number_in(answer) - self.held) <= NEAR * abs(self.held)
        verdict = "as in the run" if same else f"the run holds {text.number(self.held)}"
        return f"{self.words} You predicted {answer}: {verdict}."


def number_in(answer: str) -> float:
    try:
        return float(answer)
    except ValueError:
        raise UserError(
            f"{answer!r} is no number. Write one number for each question, such as 0.5, or nothing where you do not know."
        ) from None


class Predictions:
    """The questions about a run, fields for the answers, and what the run holds, which is shown after them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.questions = list(questions_of(tables))
        if not self.questions:
            raise UserError(f"Nothing can be asked about {tables.program}: {tables.headline}.")

    def asked(self) -> str:
        """Returns the questions, each with its number."""
        return "\n".join(f"{place}. {each.words}" for place, each in enumerate(self.questions, 1))

    def compared(self, answers: Sequence[str]) -> str:
        """Returns a line for each question and, below them, the rows in which the runs part."""
        given = [each.strip() for each in answers]
        if not any(given):
            return NOBODY
        given += [""] * (len(self.questions) - len(given))
        if len(given) > len(self.questions):
            raise UserError(
                f"There are {len(self.questions)} questions and {len(given)} answers: separate one answer for each by commas."
            )
        return "\n".join(each.answered(answer) for each, answer in zip(self.questions, given))

    def step(self) -> Step:
        return step_that_parts(self.tables)

    def shown(self) -> str:
        """Returns the view as text."""
        excerpt = excerpt_of(self.tables.program, self.tables)
        legend = [text.FITS, *text.legend_of(excerpt.rows)]
        return "\n".join([text.excerpt_in_words(excerpt), *legend])

    def fields(self) -> None:
        """Shows a field for each question and a button that shows the run."""
        Fields(self).show()


class Fields:
    """One field for each question; a click compares them with the run and shows what replicas hold."""

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions
        self.answers, self.button, self.status, self.view = make_controls(predictions.questions)
        self.button.on_click(self.click)

    def click(self, _: Any = None) -> None:
        self.view.value = ""
        try:
            answers = [each.value for each in self.answers]
            self.say(self.predictions.compared(answers))
        except UserError as reason:
            return self.say(str(reason))
        if any(answers):
            self.view.value = steps_html(self.predictions.tables, self.predictions.step())

    def say(self, words: str) -> None:
        self.status.value = "".join(map(note, words.splitlines()))

    def show(self) -> None:
        import ipywidgets

        words = [ipywidgets.HTML(note(each)) for each in self.predictions.asked().splitlines()]
        asked = [each for pair in zip(words, self.answers) for each in pair]
        shown = [*asked, self.button, self.status, self.view]
        show_widget(ipywidgets.VBox(shown), self.predictions.asked())


def note(words: str) -> str:
    return from_template("panel/templates/note.html", note=words)


def make_controls(questions: Sequence[Question]) -> tuple[list[Any], Any, Any, Any]:
    import ipywidgets

    answers = [
        ipywidgets.Text(description=f"Answer {place}") for place, _ in enumerate(questions, 1)
    ]
    for each in answers:
        each.layout.width = "min(20em, 100%)"
        each.add_class("clinic-prediction")
    button = ipywidgets.Button(description="Compare with the run", button_style="primary")
    button.layout.width = "min(20em, 100%)"
    button.add_class("clinic-compare")
    displays = ipywidgets.HTML(), ipywidgets.HTML()
    displays[0].add_class("clinic-compared")
    return answers, button, *displays


# Which questions a run allows


def questions_of(tables: Tables) -> Iterator[Question]:
    """Yields a question for each column of the first and the last row that can be asked about, of those that differ if any do."""
    if not tables.steps:
        return
    step = step_that_parts(tables)
    rows = asked_of(step.marked) or asked_of(step.rows)
    asked = [
        question(row, column, value, step.title)
        for row in dict.fromkeys([*rows[:1], *rows[-1:]])
        for column, value in zip(tables.columns, (*row.cells, row.alone))
        if value is not None or row.stage.key == "examples"  # of which nothing is a number, too
    ]
    yield from dict.fromkeys(asked)  # two arguments have as many examples


def asked_of(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if is_asked(row)]


def is_asked(row: Row) -> bool:
    """Tells whether the columns have one number each; of what is there before the first step, nothing is asked."""
    values = [each for each in (*row.cells, row.alone) if each is not None]
    if row.stage.key == "examples":
        return all(each.shape for each in values)
    has_one = bool(values) and all(len(each.entries) == 1 for each in values)
    return has_one and not row.is_together and row.stage.key != "start"


def question(row: Row, column: str, value: Value | None, step: str) -> Question:
    if row.stage.key == "examples":
        words = COUNTS.format(column=column, step=step)
        return Question(words, float(value.shape[0] if value else 0))
    words = NUMBERS.format(column=column, step=step, label=text.label(row))
    return Question(words, value.entries[0] if value else 0.0)
