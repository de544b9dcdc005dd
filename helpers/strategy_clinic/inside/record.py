"""Defines the record of a run: a file of JSON lines, each with what one replica held of one tensor in one step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..observer.events import Frame, Stack
from .values import Value, value_from

SUFFIX = ".inside"  # of the record beside a run's file of events
MOST_LINES = 40_000  # of one record
MOST_FRAMES = 3  # lines of the program that are kept of each stack
UNSEEN = "unseen"  # in place of a stage: the name is a sentence about what is not seen
END = 1_000_000_000  # in place of a step: what the program printed last, or raised
IN_A_STEP = (
    "in a step"  # how a program ended that an exception has ended before its last step was done
)
TOGETHER = -1  # in place of a replica's number: the replicas hold it together


@dataclass(frozen=True)
class Seen:
    """What a replica held of one tensor."""

    step: int  # a call that the program makes, from 1
    turn: int  # which of the steps that this call made in a graph, from 0
    stage: str  # a key of `stages.TABLE`
    name: str
    replica: int
    value: Value
    how: str = ""  # how it was aggregated, or that it ended in a step
    lines: Stack = ()

    def to_json(self) -> str:
        lines = [list(frame) for frame in self.lines[:MOST_FRAMES]]
        parts = [self.step, self.turn, self.stage, self.name, self.replica]
        return json.dumps([*parts, self.value.as_json(), self.how, lines])


def record_file(events: str) -> str:
    return f"{events}{SUFFIX}"


def read_record(text: str) -> Iterator[Seen]:
    """Yields what was seen; a line that a killed process has not ended is left out."""
    for line in text.splitlines():
        try:
            parts: list[Any] = json.loads(line)
        except ValueError:
            continue
        step, turn, stage, name, replica, value, how, lines = parts
        stack = tuple(Frame(*frame) for frame in lines)
        yield Seen(step, turn, stage, name, replica, value_from(value), how, stack)
