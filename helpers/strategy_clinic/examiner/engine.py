"""Runs the rules over recordings, and the follow-up runs that they ask for, until nothing is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..base.errors import UserError
from ..observer.events import ExceptionRaised, Stack
from ..programs.error_text import useful_line
from ..triage import classify, known_errors
from . import rule
from .divergence import is_deterministic
from .findings import Evidence, Finding, FollowUp, Location, Note, Replace, Text
from .hangs import hangs
from .recording import Moment, Recording, Role, stack_of
from .restarts import WHOLE_FILES, missing_file, restarts
from .rule import ModeRules, Rule, Runs, place_in_words
from .whose_fault import settle

NOT_REPEATED = "it does not repeat itself on the same devices, so its runs were not compared"
LONGEST_MESSAGE = 300
SURE = 0.5  # of what triage advises

Runner = Callable[[FollowUp], Recording]


@dataclass
class Diagnosis:
    """What the rules found."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str | Text] = field(default_factory=list)  # what need not be a finding, and why
    agreeing: list[str | Text] = field(default_factory=list)  # the notes by which the runs agree
    unseen: list[str] = field(default_factory=list)  # what could not be compared or looked for
    stopped: bool = False  # by Ctrl-C in a follow-up run; the findings that need none are there


def diagnose(
    runs: Runs,
    run: Runner | None = None,
    rules: ModeRules | None = None,
    tell: Callable[[Finding], None] = lambda _: None,
) -> Diagnosis:
    """Returns what all rules find: exceptions first, one finding for each mode and line, and a divergence that none explains.

    `run` makes the run that a rule asks for; without it, none is made. `tell` gets each finding of a rule when it is known.
    """
    rules = rules or rule.mode_rules()
    diagnosis = Diagnosis()
    follow_ups = FollowUps(run, diagnosis)
    raised = [*named_errors(runs, rules)]
    found = [*errors(raised, rules)]
    for finding in findings_of_rules(runs, rules, follow_ups, is_raised=bool(found)):
        found.append(finding)
        tell(finding)
    others = [*hangs(runs.recordings)]
    steps = findings_of(restarts(runs.recordings, bool(found)), follow_ups)
    others += guarded("restarts", steps, diagnosis)
    lines = {line for finding in found for line in explained_lines(finding)}
    # That a kill leaves half a file is a fault of its own, whatever else is wrong with what saves it.
    found += [
        each for each in others if (each.file, each.line) not in lines or each.fix == WHOLE_FILES
    ]
    steps = findings_of(settle(runs, found, rules), follow_ups)
    found += guarded("divergences", steps, diagnosis)
    kept: dict[tuple[str, str, int], Finding] = {}
    for finding in found:
        kept.setdefault((finding.mode, finding.file, finding.line), finding)
    diagnosis.findings = list(kept.values())
    diagnosis.notes += notes_on_errors(raised)
    return diagnosis


def known_so_far(runs: Runs) -> Iterator[Finding]:
    """Yields what the rules find without a further run, and no restart takes back."""
    for each in rule.mode_rules().of_these_runs.rules:
        yield from guarded(each.mode, found_unasked(each.check(runs)), Diagnosis())


def found_unasked(steps: rule.Steps) -> Iterator[Finding]:
    """Yields what a rule finds before it asks for a run: what follows may be another thing with the answer."""
    for step in steps:
        if isinstance(step, FollowUp):
            return
        if isinstance(step, Finding):
            yield step


def findings_of_rules(
    runs: Runs, rules: ModeRules, follow_ups: FollowUps, *, is_raised: bool
) -> Iterator[Finding]:
    """Yields what each rule finds; the last ones speak only if nothing found before may be the reason, and nothing was raised."""
    spoken: list[Rule] = []
    for each in sorted(rules.rules, key=lambda each: each.last):
        if each.last and (is_raised or any(may_explain(one, each) for one in spoken)):
            continue
        steps = findings_of(each.check(runs), follow_ups)
        for finding in guarded(each.mode, steps, follow_ups.diagnosis):
            spoken.append(each)
            yield finding


def may_explain(spoken: Rule, last: Rule) -> bool:
    """Tells whether what a rule has found may be why one that speaks last has something to say.

    What is lost at a restart changes no number that a run prints before.
    """
    return spoken.explains_divergence or not last.explains_divergence


def guarded(what: str, findings: Iterator[Finding], diagnosis: Diagnosis) -> Iterator[Finding]:
    """Yields findings; an error of the rule becomes a note, so that what others find is not lost."""
    try:
        yield from findings
    except UserError:
        raise
    except Exception as error:
        diagnosis.unseen.append(
            f"not everything was looked for ({what}: {type(error).__name__}: {error})"
        )


def explained_lines(finding: Finding) -> set[tuple[str, int]]:
    """Returns the line of a mode, and the one that raised its exception if another is to blame for that."""
    blamed_and_raised = 2 if finding.evidence is Evidence.RAISED else 1
    return {(frame.path, frame.line) for frame in finding.location.frames[:blamed_and_raised]}


def findings_of(steps: rule.Steps, follow_ups: FollowUps) -> Iterator[Finding]:
    answer = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            return
        answer = follow_ups.answer(step) if isinstance(step, FollowUp) else None
        if isinstance(step, Note):
            follow_ups.diagnosis.notes.append(step.words)
            follow_ups.diagnosis.agreeing += [step.words] if step.agree else []
        if isinstance(step, Finding):
            yield step


class FollowUps:
    """Makes the runs that rules ask for, each once."""

    def __init__(self, run: Runner | None, diagnosis: Diagnosis):
        self.run, self.diagnosis = run, diagnosis
        self.answers: dict[FollowUp, Recording | None] = {}
        self.unrepeatable: set[Recording] = set()

    def answer(self, follow_up: FollowUp) -> Recording | None:
        """Returns the recording of a follow-up run; None if it cannot be made or would tell nothing."""
        if follow_up not in self.answers:
            self.answers[follow_up] = self.recording(follow_up)
        return self.answers[follow_up]

    def recording(self, follow_up: FollowUp) -> Recording | None:
        first = follow_up.recording
        of_any_run = isinstance(follow_up.change, Replace)
        possible = first.finished if of_any_run else can_be_repeated(first)
        repeatable = possible and first not in self.unrepeatable
        if self.run is None or self.diagnosis.stopped or not repeatable:
            return None
        try:
            recording = self.run(follow_up)
        except KeyboardInterrupt:
            self.diagnosis.stopped = True
            return None
        if follow_up.change is None and not is_deterministic(first, recording):
            self.unrepeatable.add(first)
            self.diagnosis.unseen.append(NOT_REPEATED)
        return recording


def can_be_repeated(recording: Recording) -> bool:
    """Tells whether the run can be made again with a change: the first run of a program, or its restart."""
    watched = recording.role is Role.WATCHED and recording.finished
    return watched or recording.role is Role.RESTARTED


# Exceptions, which triage names


@dataclass(frozen=True)
class NamedError:
    recording: Recording
    raised: ExceptionRaised
    answer: classify.Answer  # of triage
    mode: str | None


def named_errors(runs: Runs, rules: ModeRules) -> Iterator[NamedError]:
    """Yields the exceptions that ended runs; what half a file raises is no mode."""
    for recording in runs.recordings:
        raised = recording.last(ExceptionRaised)
        if raised and recording.moment is not Moment.DURING:
            answer = classify.triage(known_errors.with_installed(raised.traceback))
            mode = mode_of(recording, raised, answer.mode, rules)
            yield NamedError(recording, raised, answer, mode)


def errors(named: Sequence[NamedError], rules: ModeRules) -> Iterator[Finding]:
    for each in named:
        recording, raised = each.recording, each.raised
        if each.mode:
            message = useful_line(raised.traceback).removeprefix(f"{raised.error}: ")
            line = blamed(each.mode, recording, raised, rules)
            advice = rules.advice[each.mode](recording, line) if each.mode in rules.advice else ""
            said = each.answer.candidates[0].fix if each.answer.mode == each.mode else ""
            yield Finding(
                each.mode,
                Location(line),
                Evidence.RAISED,
                Text(f"{raised.error}: {message}"[:LONGEST_MESSAGE]),
                Text(f"raised {place_in_words(recording)}"),
                (recording.devices,),
                advice or said,
            )


def notes_on_errors(named: Sequence[NamedError]) -> list[str]:
    """Returns notes on exceptions: known errors of the installed releases, and what triage advises where it is no mode."""
    found: list[str] = []
    for each in named:
        for first in each.answer.candidates[:1]:
            if first.error:
                found.append(known_errors.about(first.error))
            elif is_advised(each) and first.fix and first.score >= SURE:
                found.append(f"the error looks like {first.kind}: {first.fix}")
    return [*dict.fromkeys(filter(None, found))]


def is_advised(named: NamedError) -> bool:
    """Tells whether triage knows an error that is no mode; of a file that a restart misses other words are said."""
    return named.answer.known and not named.mode and not missing_file(named.recording)


def mode_of(
    recording: Recording, raised: ExceptionRaised, mode: str | None, rules: ModeRules
) -> str | None:
    """Returns the mode that triage names, corrected by what the program's own lines say, or else what the run says."""
    if mode is None:
        return next((each.mode for each in rules.namings if each.fits(recording, raised)), None)
    for each in rules.reclassifications:
        if mode in each.modes:
            other = each.mode_of(recording, mode, raised, stack_of(raised))
            if other != mode:
                return other
    return mode


def blamed(mode: str, recording: Recording, raised: ExceptionRaised, rules: ModeRules) -> Stack:
    stack = stack_of(raised)
    choose = rules.blame.get(mode)
    return (choose(recording, stack) if choose else stack) or stack
