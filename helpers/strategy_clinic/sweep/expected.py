"""What a cell is expected to give: what is recorded, and the explanation of that."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .record import RecordedCell, in_words, is_another
from .settled import Settled, Why, explanation, has_a_size

ISSUE = re.compile(r"https://github\.com/[\w-]+/([\w-]+)/issues/(\d+)")


@dataclass(frozen=True)
class Expected:
    """What is recorded of a cell, None if nothing is, and why it is not as on one device, None where it is."""

    was: RecordedCell | None
    row: Settled | None

    @property
    def is_known_error(self) -> bool:
        """Returns whether a repair of Keras makes the cell the same; how Keras averages uneven parts is no error."""
        return self.row is not None and self.row.why is Why.BUG and not self.row.in_turn

    @property
    def is_always_seen(self) -> bool:
        """Returns whether each run shows the error; one that leaves memory as it was may give the right numbers."""
        return self.row is None or not self.row.any_size

    @property
    def reason(self) -> str:
        return f"{name_of(self.row)}: {self.row.says}" if self.row else ""

    def is_met_by(self, now: RecordedCell) -> bool:
        """Returns whether a cell is as it is recorded, for the same reason: what was NaN and is a number has another one."""
        if self.was is None:
            return not now.differs
        return not is_another(self.was, now, has_a_size(self.was)) and row_of(now) == self.row

    def news(self, now: RecordedCell) -> str:
        """Returns what is expected and what is found instead, in words."""
        lines = [f"{now.cell}: is {described(now)}", f"expected: {self.in_words}"]
        row = row_of(now)
        if row and row != self.row:
            lines.append(f"what is found could be: {name_of(row)}: {row.says}")
        return "\n".join(lines)

    @property
    def in_words(self) -> str:
        if self.was is None:
            return "the same as one device, since nothing is recorded"
        return described(self.was) + (f", explained by {self.reason}" if self.row else "")


def expected(cell: str, record: Mapping[str, RecordedCell]) -> Expected:
    was = record.get(cell)
    return Expected(was, row_of(was) if was else None)


def row_of(cell: RecordedCell) -> Settled | None:
    return explanation(cell) if cell.to_settle else None


def described(cell: RecordedCell) -> str:
    """Returns all by which two results of a cell are compared, in words."""
    return in_words(cell) + (", as one device that takes the parts in turn" if cell.in_turn else "")


def name_of(row: Settled) -> str:
    """Returns the name of a report, or an issue as people write it, such as keras#19005."""
    issue = ISSUE.match(row.place)
    return row.report or (f"{issue[1]}#{issue[2]}" if issue else row.place)
