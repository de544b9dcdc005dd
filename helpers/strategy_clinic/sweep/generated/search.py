"""Draws programs until the time is over, and shrinks each that differs on several replicas to the smallest that does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from ..differences import DIFFERENT, Result
from .draws import programs
from .known import known
from .program import Program

EXAMPLES = 1000  # drawn for each difference; few are needed


@dataclass(frozen=True)
class Finding:
    """A smallest program that differs, how it does, and after how many seconds and programs it was found."""

    program: Program
    result: Result
    seconds: float
    programs: int

    @property
    def known(self) -> str:
        return known(self.program, self.result)


@dataclass
class Search:
    """The results of the programs that have been run, and what was found among them."""

    result_of: Callable[[Program], Result]
    end: float
    begin: float = field(default_factory=time.monotonic)
    results: dict[Program, Result] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)

    def is_news(self, program: Program) -> bool:
        """Returns whether a program differs in a way of which no smaller one was found."""
        if program in self.results:
            return self.differs(program)
        if time.monotonic() > self.end or self.explained(program, False):
            return False
        self.results[program] = self.result_of(program)
        return self.differs(program)

    def differs(self, program: Program) -> bool:
        result = self.results[program]
        return result.outcome in DIFFERENT and not self.explained(program, result.in_turn)

    def explained(self, program: Program, in_turn: bool) -> bool:
        """Returns whether a program has all choices of a finding; what agrees in turn explains only what does, too."""
        return any(
            each.program.choices <= program.choices
            for each in self.found
            if in_turn or not each.result.in_turn
        )

    def next(self, random: Random) -> Finding | None:
        """Returns the smallest program of the next difference, None if none is drawn before the time is over."""
        usual = settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        try:
            program = find(programs(), self.is_news, settings=usual, random=random)
        except NoSuchExample:
            return None
        seconds = time.monotonic() - self.begin
        finding = Finding(program, self.results[program], seconds, len(self.results))
        self.found.append(finding)
        return finding


def search(
    result_of: Callable[[Program], Result],
    minutes: float,
    seed: int,
    tell: Callable[[Finding], None],
) -> Search:
    """Runs drawn programs for so long, and tells each finding when it is known."""
    found, random = Search(result_of, time.monotonic() + 60 * minutes), Random(seed)
    while time.monotonic() < found.end:
        finding = found.next(random)
        if finding:
            tell(finding)
    return found
