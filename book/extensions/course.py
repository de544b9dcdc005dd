"""The course: its lessons in their order, with the minutes that each takes, and the lines that lead from one to the next."""

import functools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.modes.failure_mode import FailureMode
from strategy_clinic.programs.text import SUBJECTS
from strategy_clinic.rendering import sources

PAGE = "learn/course"
TABLE = Path(__file__).parents[1] / f"{PAGE}.toml"
WORDS, LINES, EXERCISE = 150, 15, 8  # words and lines of code in a minute; minutes


@dataclass(frozen=True)
class Lesson:
    """A page of the course, and its number."""

    number: int
    part: str
    mode: FailureMode
    learns: str

    @property
    def page(self) -> str:
        return str(PurePosixPath(self.mode.notebook).with_suffix(""))


@functools.cache
def parts() -> list[dict[str, Any]]:
    """Returns the parts of the course as they are declared."""
    declared: list[dict[str, Any]] = files.toml(TABLE.read_text())["part"]
    return declared


@functools.cache
def lessons() -> dict[str, Lesson]:
    """Returns the lessons by their pages, in their order."""
    declared = [(part["title"], lesson) for part in parts() for lesson in part["lesson"]]
    made = [
        Lesson(number, title, registry.mode_by_id(lesson["mode"]), lesson["learns"])
        for number, (title, lesson) in enumerate(declared, 1)
    ]
    return {lesson.page: lesson for lesson in made}


def minutes(mode: FailureMode) -> int:
    """Returns how long a page takes to read and its exercise to solve, by the number of its words and lines of code."""
    cells = sources.stored_notebook(files.ROOT / mode.notebook).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    texts = [files.program_text(mode.id, subject) for subject in SUBJECTS]
    lines = sum(len(text.splitlines()) for text in texts)
    return round(words / WORDS + lines / LINES) + EXERCISE


def length() -> str:
    """Returns a sentence on how long the course takes, and one on how that is estimated."""
    every = sum(minutes(lesson.mode) for lesson in lessons().values())
    return (
        f"It has {len(lessons())} lessons and takes about {every / 60:.0f} hours. The minutes are estimates: {WORDS} words and "
        f"{LINES} lines of code in a minute, and {EXERCISE} minutes for the exercise."
    )


def course() -> str:
    """Returns a section for each part, with its lessons."""
    return "\n\n".join(map(part_section, parts()))


def part_section(part: dict[str, Any]) -> str:
    inside = [lesson for lesson in lessons().values() if lesson.part == part["title"]]
    return "\n\n".join([f"## {part['title']}", *map(item, inside), part.get("more", "")])


def item(lesson: Lesson) -> str:
    """Returns an item of a list: the title, which leads to the page, and below it the minutes and what one learns."""
    number = f"{lesson.number}. "
    title = f"{number}[](../{lesson.mode.notebook})"
    return f"{title}\\\n{' ' * len(number)}{minutes(lesson.mode)} minutes. {lesson.learns}"


def neighbours(page: str) -> tuple[str, str]:
    """Returns the pages before and after a page of the course; the course is before the first, and nothing after the last."""
    pages = [PAGE, *lessons(), ""]
    place = pages.index(page)
    return pages[place - 1] if place else "", pages[place + 1]


def lead_on(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Lets the links at the end of a page lead along the course, and not along the list of pages."""
    if page in (PAGE, *lessons()):
        names = dict(zip(("prev", "next"), neighbours(page)))
        context.update({name: link(app, page, to) for name, to in names.items()})


def link(app: Sphinx, page: str, to: str) -> dict[str, str] | None:
    if not to:
        return None
    title = app.builder.render_partial(app.env.titles[to])["title"]
    return {"link": app.builder.get_relative_uri(page, to), "title": title}


def say_where(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Adds a line below the title of a lesson: its number, how long it takes, and the lessons before and after it."""
    if page not in lessons():
        return
    lesson = lessons()[page]
    line = nodes.paragraph(
        "", f"Lesson {lesson.number} of {len(lessons())}", classes=["clinic-lesson"]
    )
    line += nodes.Text(f": {lesson.part} · about {minutes(lesson.mode)} minutes · ")
    for word, to in zip(("previous", "next"), neighbours(page)):
        if to in lessons():
            words = f"{word}: {lessons()[to].mode.name}"
            line += [reference(app, page, to, words), nodes.Text(" · ")]
    line += reference(app, page, PAGE, "the course")
    doctree[0].insert(1, line)


def reference(app: Sphinx, page: str, to: str, words: str) -> nodes.reference:
    address = app.builder.get_relative_uri(page, to)
    return nodes.reference("", words, refuri=address, internal=True)


def connect(app: Sphinx) -> None:
    app.connect("doctree-resolved", say_where)
    app.connect("html-page-context", lead_on)
