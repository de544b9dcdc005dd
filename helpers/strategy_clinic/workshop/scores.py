"""The grades of a class, and its table: a row for each participant, a column for each exercise, and the points.

A participant is the folder in which a notebook came back, or what its file's name has beside the exercise's.
"""

import csv
import io
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from ..base import files
from ..base.display import text_table
from ..base.files import write_whole
from ..records import junit

RESULTS = ("green", "red", "to read", "not run")
POINTS = {"green": 1, "red": 0}  # a person gives those of the others
OPEN = "?"  # a person has to give these points
NOBODY = "(no name)"
FORMULA = ("=", "+", "-", "@")  # with which a spreadsheet would calculate
EDGES = " _-()."


@dataclass(frozen=True)
class Grade:
    """The result of one exercise of one participant; `network` and `files` say how it was kept from them while it ran."""

    notebook: str
    participant: str
    exercise: str
    result: str
    says: str
    network: str = ""
    files: str = ""

    @property
    def points(self) -> int | None:
        return POINTS.get(self.result)

    def __str__(self) -> str:
        return f"{self.notebook}: {self.result}: {self.says}"


def participant_of(name: str, mode: str) -> str:
    """Returns who has handed in a notebook, by its name in the folder that is graded."""
    path = PurePath(name)
    if len(path.parts) > 1:
        return path.parts[0]
    page = files.mode_pages().get(mode)
    names = [files.page_name(page)] if page else []
    rest = re.sub("|".join([*names, mode]), "", path.stem)
    return rest.strip(EDGES) or NOBODY


def rows(grades: list[Grade]) -> list[list[str]]:
    """Returns the table with its headings. Of several notebooks for one exercise, the best one counts."""
    columns = sorted({grade.exercise for grade in grades})
    best: dict[tuple[str, str], str] = {}
    for grade in grades:
        place, words = (grade.participant, grade.exercise), points_of(grade)
        best[place] = max(best.get(place, "0"), words, key=["0", OPEN, "1"].index)
    names = sorted({grade.participant for grade in grades})
    table = [["participant", *columns, "points"]]
    for name in names:
        cells = [best.get((name, column), "") for column in columns]
        table.append([name, *cells, total(cells)])
    return table


def points_of(grade: Grade) -> str:
    return OPEN if grade.points is None else str(grade.points)


def total(cells: list[str]) -> str:
    """Returns the points, and how many more a person could give."""
    unknown = cells.count(OPEN)
    points = cells.count("1")
    return f"{points} to {points + unknown}" if unknown else str(points)


def as_text(grades: list[Grade]) -> str:
    return text_table(rows(grades))


def write_csv(path: Path, grades: list[Grade]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [[plain(cell) for cell in row] for row in rows(grades)]
    )
    write_whole(path, text.getvalue())


def plain(cell: str) -> str:
    """Returns a cell that no spreadsheet takes for a formula: its participant has chosen it."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


# In other forms


def summary(grades: list[Grade]) -> str:
    counts = [f"{sum(each.result == word for each in grades)} {word}" for word in RESULTS]
    kept = {f"; network: {each.network}" for each in grades if each.network}
    kept |= {f"; files: {each.files}" for each in grades if each.files}
    return ", ".join(counts) + "".join(sorted(kept, reverse=True))


def write_grades(path: Path, grades: list[Grade]) -> None:
    write_whole(path, json.dumps([asdict(each) for each in grades], indent=1))


def write_junit(path: Path, grades: list[Grade]) -> None:
    """Writes red as a failure, what is to be read as skipped, and what was not run as an error."""
    kinds = {"red": "failure", "not run": "error", "to read": "skipped"}
    cases = []
    for each in grades:
        reasons = {kinds[each.result]: each.says} if each.result in kinds else {}
        cases.append(junit.case("exercises", each.notebook, **reasons))
    junit.write_suites(path, [junit.suite("exercises", cases)])
