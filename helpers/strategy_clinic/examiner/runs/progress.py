"""What an examination reports while it goes on: that a run has begun, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass

from ...observer.events import Outcome


@dataclass(frozen=True)
class RunStarted:
    description: str  # such as "on 2 devices (watched)"


@dataclass(frozen=True)
class RunEnded:
    task: str  # of a cluster, such as "worker 0"
    outcome: Outcome
    seconds: float


Progress = RunStarted | RunEnded
Reporter = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Reports nothing."""
