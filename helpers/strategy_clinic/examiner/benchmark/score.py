"""How well the examiner does on the benchmark: one line for each program, totals, and an exit status for the nightly run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...base import files
from ...base.errors import choose
from ...observer.events import ExceptionRaised, Outcome
from ...setups import runtime
from ..findings import Examination, Finding
from ..recording import observer_failures
from .programs import (
    BenchmarkProgram,
    benchmark_programs,
    examine_benchmark_program,
)
from .rates import beside_in_words, precision, rate

ON_LINE, NAMED, MISSED = "on the line", "named", "missed"
CORRECT, FALSE_POSITIVE, FAILED, UNAVAILABLE = "correct", "FALSE POSITIVE", "FAILED", "unavailable"
NOT_SOUGHT = "not looked for"  # without a message, and without a finding: the mode's page says why
NOT_COUNTED = UNAVAILABLE, NOT_SOUGHT
BAD = MISSED, FALSE_POSITIVE, FAILED


@dataclass(frozen=True)
class Score:
    """What the examiner said of one program."""

    program: BenchmarkProgram
    findings: tuple[Finding, ...]
    outcome: Outcome
    available: bool = True  # a program may raise Unavailable, as a notebook does
    failures: tuple[str, ...] = ()  # of the observer

    @property
    def word(self) -> str:
        if not self.available:
            return UNAVAILABLE
        if not self.program.is_broken:
            return self.word_of_correct
        lines = [each.line for each in self.right]
        if lines:
            return ON_LINE if set(self.program.guilty) & set(lines) else NAMED
        return MISSED if self.program.is_sought else NOT_SOUGHT

    @property
    def right(self) -> list[Finding]:
        is_broken, mode = self.program.is_broken, self.program.mode
        return [each for each in self.findings if is_broken and each.mode == mode]

    @property
    def false(self) -> list[Finding]:
        """Returns the findings of another mode; in a correct program, those that accuse it."""
        if self.program.is_broken:
            return [each for each in self.findings if each not in self.right]
        # A broken program that works on this version of Keras may still show what Keras does wrong; a repaired one may not.
        is_repaired = self.program.subject != "broken"
        return [each for each in self.findings if is_repaired or not each.by_framework]

    @property
    def word_of_correct(self) -> str:
        if self.false and self.outcome is not Outcome.RAISED:
            return FALSE_POSITIVE
        return CORRECT if self.outcome is Outcome.FINISHED else FAILED

    def __str__(self) -> str:
        program, setup = self.program, self.program.setup
        found = [f"{each.mode} at line {each.line}" for each in self.findings]
        elsewhere = program.is_broken and self.word != ON_LINE
        guilty = ", ".join(map(str, program.guilty))
        word = self.word + (f" (guilty: {guilty})" if elsewhere else "")
        place = f"Keras {setup.keras}  {setup.strategy} x{setup.devices}"
        failures = "".join(f"  OBSERVER FAILED {each}" for each in self.failures)
        ended = f"{', '.join(found) or 'nothing'}  [{self.outcome.value}]"
        return f"{program.mode} {program.subject:8} {place:28} {word:14} {ended}{failures}"


def score_of(program: BenchmarkProgram, examination: Examination) -> Score:
    first = examination.recordings[0]
    raised = first.last(ExceptionRaised)
    return Score(
        program,
        tuple(examination.findings),
        first.outcome,
        not raised or raised.error != "Unavailable",
        observer_failures(examination.recordings),
    )


def totals(scores: Sequence[Score]) -> str:
    """Returns the shares with their 95 % intervals, and what is found beside the modes of the programs."""
    scores = [score for score in scores if score.word not in NOT_COUNTED]
    words = Counter(score.word for score in scores)
    broken = [score for score in scores if score.program.is_broken]
    right = sum(len(score.right) for score in scores)
    parts = [
        rate(words[ON_LINE] + words[NAMED], len(broken), "named"),
        rate(words[ON_LINE], len(broken), "on the line"),
        beside_in_words([score.false for score in broken]),
        precision(right, right + sum(len(score.false) for score in scores)),
        rate(words[FALSE_POSITIVE], len(scores) - len(broken), "correct accused"),
    ]
    return "; ".join([*parts, *([f"{words[FAILED]} failed"] if words[FAILED] else [])])


def run_benchmark(
    modes: Sequence[str], keras_versions: Sequence[int], strategies: Sequence[str]
) -> int:
    """Examines the programs of some modes, or of all, and prints what becomes of each.

    Returns 1 if a correct program is accused or fails, or if a mode is missed that the examiner can see; otherwise 0.
    """
    for mode in modes:
        choose("mode", mode, files.mode_pages())
    for keras in keras_versions:
        choose("keras", keras, runtime.KERAS_VERSIONS)
    bad = False
    for keras in keras_versions:
        for strategy in strategies or [""]:
            scores = []
            for program in benchmark_programs(modes, keras, strategy):
                scores.append(score_of(program, examine_benchmark_program(program)))
                print(scores[-1], flush=True)
            under = f", {strategy}" if strategy else ""
            print(f"Keras {keras}{under}: {totals(scores)}", flush=True)
            bad = bad or any(score.word in BAD for score in scores)
    return int(bad)
