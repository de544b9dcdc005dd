"""What an examination reports while it goes on: that a run has begun, how it ended, and what the runs so far show."""

from collections.abc import Callable
from dataclasses import dataclass

from ...observer.events import Outcome
from ..findings import Finding


@dataclass(frozen=True)
class RunStarted:
    description: str  # such as "on 2 devices (watched)"


@dataclass(frozen=True)
class RunEnded:
    task: str  # of a cluster, such as "worker 0"
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class FindingKnown:
    finding: Finding  # with lines as the reader of the program has them


Progress = RunStarted | RunEnded | FindingKnown
Reporter = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Reports nothing."""
