"""What a rule is: decorators for the modules rule.py of the failure modes, and the loader of these modules."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from ..base.files import PACKAGE
from ..observer.events import (
    ExceptionRaised,
    InputShared,
    KerasDistributionSet,
    Stack,
    StrategyMade,
)
from .batch_sizes import chosen_sizes
from .findings import (
    Answers,
    Evidence,
    Finding,
    FollowUp,
    Location,
    Note,
    Text,
    counted,
    with_full_batches,
)
from .recording import Recording, Role
from .suspects import Suspect

if TYPE_CHECKING:
    from .divergence import Divergence

# A rule yields findings, notes, and follow-ups: for each of these the engine sends its recording, or None if it was not run.
Steps = Generator[Finding | Note | FollowUp, Recording | None, None]
Findings = Steps | Iterator[Finding]


@dataclass(frozen=True)
class Runs:
    """All runs of an examination: their recordings, and where those on several numbers of devices differ."""

    recordings: Sequence[Recording]
    divergences: Sequence[Divergence] = ()
    again: Sequence[Recording] = ()  # started after a whole run; only few rules may judge these

    @property
    def whole(self) -> list[Recording]:
        """The runs of the program as it is, on several numbers of devices."""
        return [each for each in self.recordings if each.is_unchanged]

    @property
    def matched(self) -> list[Recording]:
        """These runs, and those on fewer devices with the batches of more."""
        return [*self.whole, *(each for each in self.recordings if each.role is Role.MATCHED)]


def least_and_most(
    among: Sequence[Recording], fits: Callable[[Recording], object]
) -> tuple[Recording, Recording] | None:
    """Returns those of the runs that fit which have the fewest and the most replicas; None if there are not two numbers."""
    by_count = {each.replicas: each for each in among if fits(each)}
    few, many = min(by_count, default=1), max(by_count, default=1)
    return (by_count[few], by_count[many]) if few < many else None


def same_batches(among: Sequence[Recording]) -> Answers[list[tuple[Recording, Recording]]]:
    """Returns the pairs of runs whose steps have the same examples, the run on fewer replicas first.

    Where all data are fewer than a batch, these examples are parts of batches of other sizes.
    """
    found = []
    for one, other in itertools.permutations(among, 2):
        is_pair = other.replicas > one.replicas and one.examples == other.examples > 0
        if is_pair and not chosen_sizes(one, other) and (yield from is_distributed(other)):
            found.append((one, other))
    return found


def is_distributed(recording: Recording) -> Answers[bool]:
    """Tells whether the examples of a step are those of all replicas. A graph may not know the sizes of what it takes.

    Without a smaller last batch it knows them, and the observer sees what all replicas are given.
    """
    if recording.examples_seen:
        return True
    full = yield with_full_batches(recording)
    return full is not None and not full.of(InputShared) and full.examples == recording.examples


@dataclass(frozen=True)
class Rule:
    mode: str
    check: Callable[[Runs], Steps]
    # Whether runs on other numbers of devices differ through the mode. Not through lost files and lost time: all have these.
    explains_divergence: bool = True
    # Whether the mode's own program has a finding. It has a note if only Keras does what the mode is about, and nothing if a rule
    # is about a process that is started again: the program of a page is one process.
    finds_own_program: bool = True
    # It speaks only if no finding may be the reason: what it looks at differs through many faults.
    last: bool = False


@dataclass(frozen=True)
class Blame:
    """Chooses the line to blame for an exception of a mode, where that is not the innermost line of the program."""

    mode: str
    choose: Callable[[Recording, Stack], Stack]


@dataclass(frozen=True)
class Advice:
    """Chooses the fix for an exception of a mode by what the run shows; an empty string where that of the message is right."""

    mode: str
    fix: Callable[[Recording, Stack], str]


@dataclass(frozen=True)
class Reclassification:
    """Corrects what triage has named one of these modes: returns the mode, or None if it is none."""

    modes: tuple[str, ...]
    mode_of: Callable[[Recording, str, ExceptionRaised, Stack], str | None]


@dataclass(frozen=True)
class Naming:
    """Names an exception that triage does not know, since its text alone says too little."""

    mode: str
    fits: Callable[[Recording, ExceptionRaised], bool]


@dataclass(frozen=True)
class ModeRules:
    """The rules of all modes."""

    rules: Sequence[Rule]
    blame: Mapping[str, Callable[[Recording, Stack], Stack]]
    reclassifications: Sequence[Reclassification]
    namings: Sequence[Naming] = ()
    suspects: Sequence[Suspect] = ()  # of divergences
    advice: Mapping[str, Callable[[Recording, Stack], str]] = field(default_factory=dict)

    @property
    def of_these_runs(self) -> ModeRules:
        """The rules whose findings no restart and no further run takes back."""
        chosen = [each for each in self.rules if each.explains_divergence and not each.last]
        return replace(self, rules=chosen)

    @property
    def of_other_promises(self) -> set[str]:
        """The modes through which runs on several numbers of devices do not differ."""
        return {each.mode for each in self.rules if not each.explains_divergence}


@functools.cache
def mode_rules() -> ModeRules:
    """Returns what the modules rule.py in the folders of the modes define, in the order of the modes."""
    found = things_in("rule")
    return ModeRules(
        [each for each in found if isinstance(each, Rule)],
        {each.mode: each.choose for each in found if isinstance(each, Blame)},
        [each for each in found if isinstance(each, Reclassification)],
        [each for each in found if isinstance(each, Naming)],
        [each for each in found if isinstance(each, Suspect)],
        {each.mode: each.fix for each in found if isinstance(each, Advice)},
    )


def things_in(name: str) -> list[object]:
    """Returns all that the modules of a name in the folders of the modes have, in the order of the modes."""
    return [thing for module in modules_of_modes(name) for thing in vars(module).values()]


def modules_of_modes(name: str) -> list[ModuleType]:
    folders = sorted(path.parent.name for path in (PACKAGE / "modes").glob(f"*/{name}.py"))
    return [import_module(f"...modes.{folder}.{name}", __name__) for folder in folders]


# Decorators


def rule(
    mode: str,
    *,
    explains_divergence: bool = True,
    after_end: bool = False,
    finds_own_program: bool = True,
) -> Callable[[Callable[[Recording], Findings]], Rule]:
    """Makes a rule of a function that is called with one recording after the other.

    With `after_end`, also with that of a program that had ended before: what it saves may be gone by then, or complete.
    """

    def made(check: Callable[[Recording], Findings]) -> Rule:
        def check_each(runs: Runs) -> Steps:
            for recording in (*runs.recordings, *(runs.again if after_end else ())):
                yield from check(recording)

        return Rule(mode, check_each, explains_divergence, finds_own_program)

    return made


def rule_of_runs(
    mode: str, *, explains_divergence: bool = True, last: bool = False
) -> Callable[[Callable[[Runs], Findings]], Rule]:
    """Makes a rule of a function that compares recordings."""

    def made(check: Callable[[Runs], Findings]) -> Rule:
        def check_all(runs: Runs) -> Steps:
            yield from check(runs)

        return Rule(mode, check_all, explains_divergence, last=last)

    return made


def blames(mode: str) -> Callable[[Callable[[Recording, Stack], Stack]], Blame]:
    """Makes a Blame of a function from the frames of an exception, innermost first, to those to blame."""
    return lambda choose: Blame(mode, choose)


def advises(mode: str) -> Callable[[Callable[[Recording, Stack], str]], Advice]:
    """Makes an Advice of a function from the frames to blame for an exception to the fix."""
    return lambda fix: Advice(mode, fix)


def reclassify(
    *modes: str,
) -> Callable[[Callable[[Recording, str, ExceptionRaised, Stack], str | None]], Reclassification]:
    """Makes a Reclassification of a function that corrects what triage has named."""
    return lambda mode_of: Reclassification(modes, mode_of)


def names(mode: str) -> Callable[[Callable[[Recording, ExceptionRaised], bool]], Naming]:
    """Makes a Naming of a function that tells whether an exception is of the mode in this run."""
    return lambda fits: Naming(mode, fits)


# What rules yield


def observed(
    mode: str,
    recording: Recording,
    location: Stack,
    message: str | Text,
    *proof: str | Location,
    fix: str = "",
    by_framework: bool = False,
) -> Finding:
    """Returns a finding that one recording shows; its mode has the fix if none is given."""
    words = message if isinstance(message, Text) else Text(message)
    proved = Text(f"observed {place_in_words(recording)}: ", *proof)
    where, devices = Location(location), (recording.devices,)
    return Finding(mode, where, Evidence.OBSERVED, words, proved, devices, fix, by_framework)


def place_in_words(recording: Recording) -> str:
    """Returns where a run was: a program without a strategy uses one of the devices that it sees."""
    if recording.of(StrategyMade) or recording.last(KerasDistributionSet):
        return f"on {counted(recording.devices, 'device')}"
    return "in a run without a strategy"


def compared(
    mode: str,
    devices: tuple[int, int],
    location: Stack,
    message: str,
    proof: str = "",
    *,
    fix: str = "",
    by_framework: bool = False,
) -> Finding:
    """Returns a finding that runs on two numbers of devices show side by side."""
    words, proved = Text(message), Text(proof or "compared {} and {} devices".format(*devices))
    where, evidence = Location(location), Evidence.COMPARED
    return Finding(mode, where, evidence, words, proved, devices, fix, by_framework)


def line_of(location: Stack, otherwise: str) -> str | Location:
    """Returns a line for a sentence; other words where no line of the program is known."""
    return Location(location) if location else otherwise
