"""What rules report and ask for: findings with their location and evidence, follow-up runs, and the whole examination."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..observer.events import Outcome, Stack
from ..observer.replacements import Replacement

if TYPE_CHECKING:
    from ..inside.tables import Tables
    from .edits import Repair
    from .recording import Recording, Role


# Words in place of a mode, for findings that are none of the modes.
DIVERGES = "diverges"  # runs on several numbers of devices differ, and no rule says why
FRAMEWORK = "framework"  # they differ through the framework; the program is right


@dataclass(frozen=True)
class Location:
    """The program's frames that led to a line, the one to blame first.

    It prints as "line 12", as "line 12 of model.py" in a sentence about another file, or as "cell 3, line 2".
    """

    frames: Stack = ()
    cell: int = 0  # of a notebook, in which the line is counted
    code: str = ""  # of a line that is in no file any more, such as one of a cell
    elsewhere: str = ""  # the name of its file, where its sentence is about another one

    @property
    def file(self) -> str:
        return self.frames[0].path if self.frames else ""

    @property
    def line(self) -> int:
        return self.frames[0].line if self.frames else 0

    def __bool__(self) -> bool:
        return bool(self.frames)

    def __str__(self) -> str:
        if self.cell:
            return f"cell {self.cell}, line {self.line}"
        return f"line {self.line}" + (f" of {self.elsewhere}" if self.elsewhere else "")

    def seen_from(self, file: str) -> Location:
        """Returns the location as a sentence about a file tells it."""
        is_elsewhere = bool(self) and self.file != file
        return replace(self, elsewhere=name_beside(self.file, file) if is_elsewhere else "")


def name_beside(file: str, other: str) -> str:
    """Returns the name of a file, with those of the folders in which it parts from another one of the same name."""
    one, two = Path(file).parts, Path(other).parts
    if one[-1:] != two[-1:]:
        return Path(file).name
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, two)))
    return Path(*one[min(shared, len(one) - 2) :]).as_posix()


class Text(tuple["str | Location", ...]):
    """A sentence in parts, so that its locations can be printed as lines of a script or of a notebook's cells."""

    def __new__(cls, *parts: str | Location) -> Text:
        return super().__new__(cls, parts)

    def __str__(self) -> str:
        return "".join(map(str, self))

    def relocated(self, change: Callable[[Location], Location]) -> Text:
        return Text(*(change(part) if isinstance(part, Location) else part for part in self))


class Evidence(Enum):
    """How a finding was proved."""

    RAISED = "raised"  # the program failed with an exception of this mode
    OBSERVED = "observed"  # in one run
    COMPARED = "compared"  # in runs on several numbers of devices or in several processes


@dataclass(frozen=True)
class Finding:
    """A failure mode or a divergence that runs have shown. `proof` is a sentence that begins with the evidence's value."""

    mode: str
    location: Location
    evidence: Evidence
    message: Text
    proof: Text
    devices: tuple[int, ...] = ()
    fix: str = ""  # instead of the one that its mode has
    by_framework: bool = False  # TensorFlow or Keras is wrong, and the program is right

    @property
    def file(self) -> str:
        return self.location.file

    @property
    def line(self) -> int:
        return self.location.line

    def relocated(self, change: Callable[[Location], Location]) -> Finding:
        """Returns the finding with every location changed; those within its sentences are told as seen from its own."""
        location = change(self.location)

        def told(part: Location) -> Location:
            return change(part).seen_from(location.file)

        message, proof = (text.relocated(told) for text in (self.message, self.proof))
        return replace(self, location=location, message=message, proof=proof)


@dataclass(frozen=True)
class Note:
    """What could not be compared or need not be reported, and why."""

    words: str | Text
    agree: bool = False  # the runs, but for rounding and what correct programs have


# Follow-up runs: the recorded run once more, with one change


@dataclass(frozen=True)
class ResetVariable:
    """The variable gets its first value back at the first save (the observer's --reset)."""

    number: int


@dataclass(frozen=True)
class GiveValue:
    """The target is made with the value that the source had at the first save (--give)."""

    source: int
    target: int


@dataclass(frozen=True)
class BeginWith:
    """The restarted program makes the variable with this value (--begin); only of a Role.RESTARTED recording."""

    number: int
    value: float


@dataclass(frozen=True)
class OtherSeed:
    """Random numbers for which the program chooses no seed are others (--seed)."""


@dataclass(frozen=True)
class OtherLaterSeeds:
    """A seed that the program gives a function again is another one then (--reseed)."""


@dataclass(frozen=True)
class OtherHashes:
    """Strings have other hashes, as in each process for which nobody sets PYTHONHASHSEED."""


@dataclass(frozen=True)
class ShowMeans:
    """Means over replicas that are computed in graphs are reported, too (--tell)."""


@dataclass(frozen=True)
class Replace:
    """The step has other parts than the program's (--replace), and `tf.keras` is another version of Keras (--keras)."""

    replacements: frozenset[Replacement]
    keras: int = 0  # 0: as the program has it
    onednn: bool = False  # with oneDNN, where the program is examined without


@dataclass(frozen=True)
class OnDevices:
    """The run has another number of devices, and the batches of `replicas` (--replicas) if that is given.

    `replacements` are those of Replace.
    """

    devices: int
    replicas: int = 0
    replacements: frozenset[Replacement] = frozenset()


Change = (
    OnDevices
    | ResetVariable
    | GiveValue
    | BeginWith
    | OtherSeed
    | OtherLaterSeeds
    | OtherHashes
    | ShowMeans
    | Replace
)


@dataclass(frozen=True)
class FollowUp:
    """Another run that a rule asks for: that of `recording`, with one change, or the same again without one.

    Follow-ups that are equal (of the same recording object, with an equal change) are run once.
    """

    recording: Recording = field(repr=False)
    change: Change | None
    words: str = field(compare=False)  # for the progress line, such as "with v as it was at first"


Result = TypeVar("Result")
# Asks for follow-ups, and returns what they show.
Answers = Generator[FollowUp, "Recording | None", Result]


FULL_BATCHES = Replace(frozenset({Replacement.FULL_BATCHES}))


def once_more(recording: Recording) -> FollowUp:
    return FollowUp(recording, None, "once more, as it was")


def with_full_batches(recording: Recording) -> FollowUp:
    return FollowUp(recording, FULL_BATCHES, "without a smaller last batch")


# The result


@dataclass(frozen=True)
class RunCounts:
    """The counts of one run: as sentences, each with its name, and as values for other programs."""

    title: str
    lines: tuple[tuple[str, Text], ...]
    values: dict[str, object]
    shown: bool  # to a person: those of the first run, or of each process of a cluster


@dataclass(frozen=True)
class RunMade:
    """A process of the program that was started and has ended: what it did outside of its folder, it has done."""

    words: str  # such as "on 2 devices (watched)"
    role: Role
    devices: int
    outcome: Outcome
    seconds: float
    keras: int | None = None
    task: str = ""  # of a cluster
    discarded: bool = False  # nothing follows from it


@dataclass
class Examination:
    """The recordings of a program, and what rules found in them."""

    program: str
    recordings: list[Recording] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what need not be a finding, and why
    unseen: list[str] = field(default_factory=list)  # what was not observed or compared, and why
    failure: str = ""  # of a program that fails in a way that is none of the modes
    failed_at: Location = Location()
    stopped: bool = False  # by Ctrl-C, so that some runs are missing
    repairs: list[Repair] = field(default_factory=list)  # that are proven
    counts: list[RunCounts] = field(default_factory=list)  # of speed and memory
    runs: list[RunMade] = field(default_factory=list)  # all of them, in their order
    tables: Tables | None = None  # what each replica held, if it was asked for
    agreeing: list[str] = field(default_factory=list)  # the notes by which the runs agree


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def listed(words: Sequence[str]) -> str:
    """Returns words as a sentence lists them, such as "1, 2 and 3"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
