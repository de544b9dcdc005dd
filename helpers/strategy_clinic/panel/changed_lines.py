"""The lines in which a broken program and the repaired one differ, below what their replicas hold."""

from collections.abc import Iterator
from textwrap import dedent

from ..inside.excerpt import without_comment
from ..inside.tables import Tables
from ..programs.text import FIXED, WRONG, marked_lines

TITLES = {WRONG: "Lines that the fixed program changes:", FIXED: "Changed lines:"}
MOST = 9


def changed_lines(tables: Tables) -> list[str]:
    """Returns a title and the marked lines of a program, with their numbers and without their comments."""
    return [line for mark, title in TITLES.items() for line in marked(tables, mark, title)]


def marked(tables: Tables, mark: str, title: str) -> Iterator[str]:
    numbers = marked_lines("\n".join(tables.source), mark)
    codes = dedent("\n".join(without_comment(tables.source[each - 1]) for each in numbers))
    lines = [f"{number:>2}  {code}" for number, code in zip(numbers, codes.splitlines())]
    yield from [title, *lines[:MOST]] if lines else []
    if len(lines) > MOST:
        yield f"and {len(lines) - MOST} more"
