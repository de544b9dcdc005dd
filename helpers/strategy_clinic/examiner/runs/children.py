"""Which of the processes of a program is examined, since it trains; and which others were not examined, or not observed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...observer.events import (
    CheckpointRestored,
    ChildKilled,
    ChildStarted,
    Ended,
    Event,
    ExceptionRaised,
    GradientComputed,
    GradientsApplied,
    HeldChildFailed,
    Loaded,
    LookedFor,
    ModelAnswered,
    ModelUsed,
    ObserverFailed,
    Outcome,
    ProcessLeft,
    StepEnded,
    StrategyMade,
    TrainedInLoop,
    WriteRefused,
)
from ...observer.stacks import ASKING, CHILD
from .process import RunningProcess
from .process_stacks import PROC, Seen, catches, command_of, processes_of

# What shows that a process trains, that it works with a model, and that it may be going to: by how much it matters.
SIGNS: dict[int, tuple[type[Event], ...]] = {
    3: (StepEnded, GradientsApplied, GradientComputed, TrainedInLoop),
    2: (Loaded, CheckpointRestored, ModelUsed, ModelAnswered),
    1: (StrategyMade,),
}
WORKS = 2
# Events that refer to no variables, so that they can stand beside those of another process.
FAILURES = ObserverFailed, WriteRefused, HeldChildFailed
OF_THE_PROGRAM = ExceptionRaised, ChildKilled, ProcessLeft, LookedFor, *FAILURES
# Of TensorFlow, in the list of the files that a process has in memory.
LIBRARY = re.compile(r"/(lib|_pywrap_)tensorflow[^/\n]*\.so")
BETWEEN_LOOKS = 0.5  # seconds
SHARE = 20  # times as long as a look takes, at least, passes until the next one
DOES = {3: "trains", 2: "works with a model", 1: "makes a strategy"}
BY_MULTIPROCESSING = "multiprocessing.spawn"
FIRST = "its first process"
ONE = "only one process of a program is, so examine what this one runs by itself"


@dataclass(frozen=True, eq=False)
class ProcessEvents:
    """The events of one process."""

    events: tuple[Event, ...]
    before: tuple[Event, ...] = ()  # of the process that it was forked from, until then
    pid: int = 0  # of one that the program has started

    @property
    def weight(self) -> int:
        return max((n for n, signs in SIGNS.items() if self.has(signs)), default=0)

    def has(self, kinds: tuple[type[Event], ...]) -> bool:
        return any(isinstance(event, kinds) for event in self.events)

    @property
    def name(self) -> str:
        """Returns the command of the process, in which numbers of descriptors are left out: they differ each time."""
        first = self.events[0] if self.events else None
        if not isinstance(first, ChildStarted):
            return FIRST
        if BY_MULTIPROCESSING in first.command:
            return "a process of multiprocessing"
        return f"the process {first.command!r}" if first.command else "a process that it has forked"

    @property
    def ended(self) -> Ended | None:
        return next((each for each in reversed(self.events) if isinstance(each, Ended)), None)


class JoinedEvents(NamedTuple):
    """The events of the process that is examined, with what others say of the program; and processes that are left out."""

    events: tuple[Event, ...]
    raised: bool = False  # that process has raised, whatever the program has made of it
    left_out: tuple[str, ...] = ()


# Files of events


def processes_of_run(
    events: Path, read: Callable[[Path], tuple[Event, ...]]
) -> tuple[ProcessEvents, ...]:
    """Returns the events of each process of a run, of the program's first one first."""
    pattern = re.compile(re.escape(f"{events.name}{CHILD}") + r"\d+")
    children = [path for path in events.parent.iterdir() if pattern.fullmatch(path.name)]
    found = {path.name: read(path) for path in (events, *sorted(children))}
    return tuple(
        ProcessEvents(each, events_before(each, found), pid_in(name))
        for name, each in found.items()
    )


def pid_in(name: str) -> int:
    return int(name.rpartition(CHILD)[2]) if CHILD in name else 0


def events_before(
    events: tuple[Event, ...], found: Mapping[str, tuple[Event, ...]]
) -> tuple[Event, ...]:
    """Returns the events that a forked process has in common with the one that it was forked from."""
    first = events[0] if events else None
    if not isinstance(first, ChildStarted) or first.forked_from not in found:
        return ()
    of_parent = found[first.forked_from]
    return (*events_before(of_parent, found), *of_parent[: first.after])


def ended_of(processes: Sequence[ProcessEvents], leader: int) -> Ended | None:
    """Returns how the program ended; by `os.exec` it may have become another one, with a file of its own."""
    found = [each.ended for each in processes if each.pid in (0, leader)]
    return next(filter(None, found), None)


# Which is examined


def joined(processes: Sequence[ProcessEvents]) -> JoinedEvents:
    """Returns the events of the process that matters most: the program's first one, or the only other one that does as much."""
    first, most = processes[0], max(each.weight for each in processes)
    foremost = [each for each in processes if each.weight == most]
    chosen = foremost[0] if len(foremost) == 1 else first
    least = WORKS if chosen.weight == most else 1
    left_out = [each for each in processes if each is not chosen and each.weight >= least]
    return JoinedEvents(
        (*events_of(chosen, first), *failures_in(processes, chosen)),
        bool(chosen.ended and chosen.ended.outcome is Outcome.RAISED),
        tuple(f"{each.name} {DOES[each.weight]}, and was not examined: {ONE}" for each in left_out),
    )


def events_of(chosen: ProcessEvents, first: ProcessEvents) -> tuple[Event, ...]:
    """Returns the events of a process, after those that it shares with others, and what the first process says of the program."""
    if chosen is first:
        return first.events
    shared = {id(event) for event in chosen.before}
    of_program = [event for event in first.events if isinstance(event, OF_THE_PROGRAM)]
    others = [event for event in of_program if id(event) not in shared]
    # A forked process that was ended has said nothing of its end; variables have the same numbers in both.
    end = [first.ended] if chosen.before and first.ended and not chosen.ended else []
    return (*chosen.before, *others, *chosen.events, *end)


def failures_in(processes: Sequence[ProcessEvents], chosen: ProcessEvents) -> Iterator[Event]:
    """Yields what was not seen of other processes, and what they were not allowed to write."""
    for process in processes:
        if process is not chosen and process is not processes[0]:
            yield from (each for each in process.events if isinstance(each, FAILURES))


# Processes without an observer


def look_for_unobserved(running: RunningProcess) -> None:
    """Looks until the program ends whether a process has TensorFlow in memory and no observer, if the system can list them."""
    threading.Thread(target=look_on, args=(running,), daemon=True).start()


def look_on(running: RunningProcess) -> None:
    suspected: set[int] = set()
    while running.process.returncode is None:
        began = time.monotonic()
        suspected = look(running, suspected)
        time.sleep(max(BETWEEN_LOOKS, SHARE * (time.monotonic() - began)))


def look(running: RunningProcess, suspected: set[int]) -> set[int]:
    """Keeps the commands of processes without an observer, and returns which have none.

    One that has just been forked, and is about to become another program, may look so for a moment.
    """
    leader = running.process.pid
    found = {each.pid for each in processes_of(leader) if is_unobserved(each)} - {leader}
    for pid in found & suspected - set(running.unobserved):
        running.unobserved[pid] = command_of(pid)
    return found


def unobserved_in_words(commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"the process {command!r} has imported TensorFlow, and could not be observed"
        for command in commands
    )


def is_unobserved(process: Seen) -> bool:
    """Tells whether a process has TensorFlow in memory, and no handler of the signal by which observers are asked."""
    with suppress(OSError):
        maps = (PROC / str(process.pid) / "maps").read_text(errors="replace")
        return bool(LIBRARY.search(maps)) and not catches(process.pid, ASKING)
    return False
