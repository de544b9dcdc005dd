"""How well the examiner does on the benchmark: one line for each program, totals, and an exit status for the nightly run."""

from __future__ import annotations

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

ON_LINE, NAMED, MISSED = "on the line", "named", "missed"
CORRECT, FALSE_POSITIVE, FAILED, UNAVAILABLE = "correct", "FALSE POSITIVE", "FAILED", "unavailable"
NOT_SOUGHT = (
    "not looked for"  # a silent mode without a finding in its own program: its page says why
)
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
        lines = [each.line for each in self.findings if each.mode == self.program.mode]
        if lines:
            return ON_LINE if set(self.program.guilty) & set(lines) else NAMED
        return MISSED if self.program.is_sought else NOT_SOUGHT

    @property
    def word_of_correct(self) -> str:
        # A broken program that works on this version of Keras may still show what Keras does wrong; a repaired one may not.
        is_repaired = self.program.subject != "broken"
        accusing = [each for each in self.findings if is_repaired or not each.by_framework]
        if accusing and self.outcome is not Outcome.RAISED:
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
    words = [score.word for score in scores if score.word not in NOT_COUNTED]
    lines = words.count(ON_LINE)
    named, missed = lines + words.count(NAMED), words.count(MISSED)
    failed = f", {words.count(FAILED)} failed" if FAILED in words else ""
    correct = f"{words.count(FALSE_POSITIVE)} false positives in {len(words) - named - missed} correct programs"
    return f"{named} of {named + missed} named, {lines} on the line; {correct}{failed}"


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
