"""Recording: all events of one run of a program, and how it ended. A recording is never changed."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TypeGuard, TypeVar, cast

from ..observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    Definition,
    Ended,
    Event,
    ExceptionRaised,
    FileMoved,
    GradientComputed,
    GradientsApplied,
    Loaded,
    LocatedEvent,
    ModelCalled,
    ModelCompiled,
    ModelSettings,
    ObserverFailed,
    OtherKerasUsed,
    Outcome,
    Owner,
    Part,
    PartUsed,
    Saved,
    SavedAgain,
    SaveKind,
    Stack,
    Started,
    StrategyMade,
    Use,
    VariableMade,
    VariableSharedCentrally,
    VariableWritten,
)
from .reading import from_json

OBSERVER_FAILED = "the observer failed in a part of the program ({})"
Kind = TypeVar("Kind", bound=Event)


INDEX = ".index"  # how the one file ends that each checkpoint of TensorFlow has


class Role(Enum):
    """What a run is made for."""

    WATCHED = "watched"  # the first, on the largest number of devices
    COMPARED = "compared"  # on another number of devices
    MATCHED = "matched"  # on fewer devices than the first, and with as many examples in a step
    REPEATED = "repeated"  # the same once more
    CHANGED = "changed"  # a follow-up with one change
    STOPPED = "stopped"  # killed after, between or during its saves
    RESTARTED = "restarted"  # started again after that
    AGAIN = "again"  # started again in the folder that a whole run has left
    TASK = "task"  # one process of a cluster
    SHOWN = "shown"  # its first steps, to show what each replica holds


class Moment(Enum):
    """When a program was killed."""

    AFTER = "after its first save"
    BETWEEN = "between two saves"
    DURING = "during a save"


@dataclass(frozen=True)
class ThreadStack:
    """Where a thread is: all of its lines, and those of the program, the innermost first."""

    lines: Stack
    own: Stack


@dataclass(frozen=True)
class ProcessStacks:
    """Where the threads of a process are, the main thread first, when it is ended by the time limit or by a fatal signal."""

    pid: int
    command: str
    threads: tuple[ThreadStack, ...]
    busy: bool  # some thread computes
    signal: int = 0  # that has ended it, if nobody has waited for it
    fatal: str = ""  # Python's words for a fatal signal, such as "Segmentation fault"


@dataclass(frozen=True, eq=False)
class Recording:
    """One run: its events in their order, and how it ended. A recording is equal to itself only."""

    role: Role
    devices: int
    events: tuple[Event, ...] = ()
    keras: int | None = None
    outcome: Outcome = Outcome.FINISHED
    status: int = 0
    output: str = ""
    seconds: float = 0.0
    task: str = ""  # of a cluster, such as "worker 0"
    steps: int = 0  # calls of `strategy.run` or of a traced function
    stacks: tuple[ProcessStacks, ...] = ()  # of a run that did not end by itself
    before: Recording | None = None  # of a program that was started again, the run before that
    moment: Moment | None = None  # when that was
    whole: Recording | None = None  # and the run that was never stopped
    plain: Recording | None = (
        None  # of a matched run, the one on as many devices with its own batches
    )
    unseen: tuple[str, ...] = ()  # sentences about processes that were not examined
    with_onednn: Recording | None = None  # of a run without oneDNN, the one that failed with it

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", with_last_names(self.events))

    @cached_property
    def keras_used(self) -> int | None:
        """The version of Keras that has run; None if nobody has asked for one, and it is the usual one."""
        used = self.last(OtherKerasUsed)
        return used.version if used else self.keras

    @property
    def finished(self) -> bool:
        return self.outcome is Outcome.FINISHED

    @property
    def is_unchanged(self) -> bool:
        """Whether it is a run of the program as it is, from its beginning."""
        return self.role in (Role.WATCHED, Role.COMPARED)

    @cached_property
    def ended(self) -> Ended:
        """What is known at the end; nothing of a run that has not told it."""
        return self.last(Ended) or Ended(self.outcome, self.status, self.seconds, (), (), ())

    def of(
        self, kind: type[Kind], *, after: Event | None = None, until: Event | None = None
    ) -> list[Kind]:
        """Returns the events of a kind; those from `after` on, and before `until`, if these are given."""
        if after is None and until is None:
            return cast(list[Kind], [*self._by_kind.get(kind, ())])
        start = self._position(after) if after is not None else 0
        end = self._position(until) if until is not None else len(self.events)
        return [event for event in self.events[start:end] if isinstance(event, kind)]

    @cached_property
    def _by_kind(self) -> dict[type[Event], list[Event]]:
        """All events by their class: rules ask for few, and often for the same."""
        found: dict[type[Event], list[Event]] = {}
        for event in self.events:
            found.setdefault(type(event), []).append(event)
        return found

    def is_before(self, event: Event, other: Event) -> bool:
        return self._position(event) < self._position(other)

    def _position(self, event: Event) -> int:
        return next(i for i, other in enumerate(self.events) if other is event)

    def first(self, kind: type[Kind]) -> Kind | None:
        return next(iter(self.of(kind)), None)

    def last(self, kind: type[Kind]) -> Kind | None:
        return next(reversed(self.of(kind)), None)

    def absolute(self, path: str) -> str:
        """Returns the path that a program means, whose folder is the one in which it was started."""
        started = self.last(Started)
        return os.path.normpath(os.path.join(started.folder if started else "", path))

    # Variables

    @cached_property
    def variables(self) -> dict[int, VariableMade]:
        return {made.number: made for made in reversed(self.of(VariableMade))}

    def variable(self, number: int) -> VariableMade | None:
        return self.variables.get(number)

    @cached_property
    def keys(self) -> dict[int, Hashable]:
        """Returns for each variable what two runs share: made at the same lines, of one shape, the first, second, ...

        All that were made count: when an old one is deleted may depend on the number of devices.
        """
        seen: Counter[Hashable] = Counter()
        found: dict[int, Hashable] = {}
        for number in sorted(self.variables.keys() - self.copies):
            made = self.variables[number]
            key = (made.location[:3], made.shape, made.maker)
            seen[key] += 1
            found[number] = (key, seen[key])
        return found

    def maker_of(self, number: int) -> Owner | None:
        """Returns by whose code a variable is made; `fit` makes those of layers that it is the first to call."""
        made = self.variable(number)
        maker = made.maker if made else None
        return Owner.LAYER if maker is Owner.TRAINER else maker

    @property
    def optimizer_made_at(self) -> Stack:
        """Where the first variable of an optimizer was made, if a line of the program is known."""
        return first_line(made for made in self.of(VariableMade) if made.maker is Owner.OPTIMIZER)

    def name_of(self, number: int) -> str:
        made = self.variable(number)
        return made.name if made else "a variable"

    def location_of(self, number: int) -> Stack:
        made = self.variable(number)
        return made.location if made else ()

    def shapes_of(self, numbers: Iterable[int]) -> list[tuple[int | None, ...]]:
        """Returns the shapes of variables in the order in which they were made."""
        return [made.shape for number in sorted(numbers) if (made := self.variable(number))]

    @cached_property
    def copies(self) -> frozenset[int]:
        """The variables that are copies of a distributed variable on one device."""
        return frozenset(part for made in self.of(VariableMade) for part in made.parts)

    @cached_property
    def shared_centrally(self) -> frozenset[int]:
        return frozenset(event.number for event in self.of(VariableSharedCentrally))

    def is_distributed(self, number: int) -> bool:
        """Whether replicas share a variable: each has a copy, or all use a central one."""
        made = self.variable(number)
        return number in self.shared_centrally or (made is not None and made.copies > 1)

    @cached_property
    def written(self) -> frozenset[int]:
        return frozenset(write.number for write in self.of(VariableWritten))

    def written_by(
        self, *writers: Owner, after: Event | None = None, until: Event | None = None
    ) -> set[int]:
        """Returns the variables that these have written to."""
        writes = self.of(VariableWritten, after=after, until=until)
        return {write.number for write in writes if write.writer in writers}

    @cached_property
    def loaded(self) -> frozenset[int]:
        return frozenset(number for load in self.of(Loaded) for number in load.variables)

    @cached_property
    def not_numbers(self) -> frozenset[int]:
        """Returns the variables that end as NaN, which is equal to nothing, not even to itself in a file."""
        values = self.ended.values
        return frozenset(each.number for each in values if math.isnan(each.sample.norm))

    @cached_property
    def trained(self) -> frozenset[int]:
        """Returns the variables that an optimizer updates, or the program itself if it has asked for their gradients."""
        updates, gradients = self.of(GradientsApplied), self.of(GradientComputed)
        connected = {number for computed in gradients for number in computed.connected}
        by_optimizers = {number for update in updates for number in update.optimizer.trains}
        return frozenset(by_optimizers | connected & self.written_by(Owner.USER))

    @cached_property
    def shared_slots(self) -> dict[int, GradientsApplied]:
        """Returns the variables of optimizers that exist once while those that they train exist once per replica.

        Each replica updates such a slot. A number such as the step counter is one of them only if replicas wrote to it.
        """
        written = {
            write.number
            for write in self.of(VariableWritten)
            if write.writer is Owner.OPTIMIZER and write.replicas > 1
        }
        return {
            number: update
            for update in self.of(GradientsApplied)
            if any(map(self.is_distributed, update.optimizer.trains))
            for number in update.optimizer.variables
            if self.is_single_slot(number) and (self.variables[number].shape or number in written)
        }

    @cached_property
    def written_outside(self) -> dict[int, VariableWritten]:
        """Returns the program's variables that no strategy distributes and several replicas write to, with the first write."""
        found: dict[int, VariableWritten] = {}
        for write in self.of(VariableWritten):
            made = self.variable(write.number)
            by_replicas = write.writer in (Owner.USER, Owner.LAYER) and write.replicas > 1
            if made is None or not by_replicas or self.is_distributed(write.number):
                continue
            is_own = made.maker in (Owner.USER, Owner.LAYER)
            if is_own and made.location and not made.copies:
                found.setdefault(write.number, write)
        return found

    def is_single_slot(self, number: int) -> bool:
        """Whether this is an optimizer's variable that exists once."""
        made = self.variable(number)
        is_own = made is not None and made.maker is Owner.OPTIMIZER and not made.copies
        return is_own and number not in self.copies and not self.is_distributed(number)

    @property
    def last_incomplete_gradient(self) -> Stack:
        """Returns where a gradient was last computed of which a part is None."""
        return next((each.location for each in self.of(GradientComputed)[::-1] if each.missing), ())

    def uses(self, *parts: Part) -> bool:
        """Tells whether a step has one of these parts."""
        return any(used.part in parts for used in self.of(PartUsed))

    # Models

    def definitions(self, use: Use, compiled_at: Stack = ()) -> list[Definition]:
        """Returns the functions of the program's that models use for this, or the models that one line compiles."""
        compiled = self.of(ModelCompiled)
        chosen = [each for each in compiled if each.location == (compiled_at or each.location)]
        found = {each: None for model in chosen for each in model.definitions if each.use is use}
        return [*found]

    # Replicas

    @cached_property
    def replicas(self) -> int:
        return max((made.replicas for made in self.of(StrategyMade)), default=1)

    @cached_property
    def processes(self) -> int:
        """Returns over how many processes the replicas are distributed: each takes its own part of a batch."""
        parts = max((len(batch.sizes) for batch in self.of(BatchTaken)), default=0)
        return max(1, self.replicas // parts) if parts and self.task else 1

    @cached_property
    def examples(self) -> int:
        """Returns the examples in a step of all replicas, as far as they were seen, or else those of a batch that was made.

        Batches that a graph takes may have no sizes. Those of a dataset that is distributed are for all replicas.
        """
        sizes = {each.size for each in self.of(DatasetBatched)}
        is_one = len(sizes) == 1 and not self.of(DatasetFromFunction)
        return self.examples_seen or (sizes.pop() if is_one else 0)

    @cached_property
    def examples_seen(self) -> int:
        """Returns the examples in a step of all replicas, as batches were taken or models were called; 0 if nobody has seen them.

        A program may also call a model to look at what it says, with other examples: outside of replicas, or after a step.
        """
        first = self.first(GradientsApplied)
        calls = self.of(ModelCalled, until=first) or self.of(ModelCalled)
        most = max((call.replicas for call in calls), default=1)
        called = [call.examples * most for call in calls if call.replicas == most]
        # What is taken after the first step may be for an evaluation.
        before = self.of(BatchTaken, until=first)
        taken = [self.processes * sum(batch.sizes) for batch in before or self.of(BatchTaken)]
        all_replicas = self.processes * self.replicas
        in_functions = [all_replicas * each.size for each in self.batched_in_functions]
        # The first dimension of what is taken may be time, and then no function makes such batches.
        if in_functions and not (before and max(taken) in in_functions):
            return in_functions[-1]
        return max(taken or called, default=0)

    @property
    def batched_in_functions(self) -> list[DatasetBatched]:
        """Returns the batches that functions make which return a dataset for a replica."""
        made_at = {made.location[0] for made in self.of(DatasetFromFunction) if made.location}
        return [each for each in self.of(DatasetBatched) if made_at & set(each.location)]

    # Files

    def saves(self, path: str, until: Event) -> list[Saved]:
        """Returns what was saved to a path before an event; what the stopped run has saved comes first."""
        saves = [*self.saves_before_start, *self.of(Saved, until=until)]
        return [save for save in saves if save.path == path]

    @cached_property
    def saves_before_start(self) -> list[Saved]:
        """Returns what the stopped run saved, without the numbers of its variables: they were other objects."""
        saves = self.before.of(Saved) if self.before else []
        return [replace(save, variables=(), omitted=()) for save in saves]

    @cached_property
    def trains_alone(self) -> bool:
        """Tells whether steps train models that have their variables on several devices, and none is called in a replica.

        Calls with unknown numbers of examples are not reported: what replicas take or write before the first update counts, too.
        """
        steps = {each.location[0].scope for each in self.of(GradientComputed) if each.location}
        calls = [
            each
            for each in self.of(ModelCalled)
            if self.trained & {*each.variables} and steps & {frame.scope for frame in each.location}
        ]
        copies = [made.copies for each in self.trained if (made := self.variable(each))]
        replicas = [each.replicas for each in calls]
        first = self.first(GradientsApplied)
        replicas += [len(batch.sizes) for batch in self.of(BatchTaken, until=first)]
        replicas += [write.replicas for write in self.of(VariableWritten, until=first)]
        is_outside = bool(calls) and max(replicas) == 1
        return is_outside and min(copies, default=0) > 1 and not self.task

    @property
    def checkpoints(self) -> list[Saved]:
        return [save for save in self.of(Saved) if save.kind is SaveKind.CHECKPOINT]


def first_line(events: Iterable[LocatedEvent]) -> Stack:
    """Returns where the first of these events was of which a line of the program is known."""
    return next((each.location for each in events if each.location), ())


def with_last_names(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Returns events in which a save has the name that its file gets afterwards: many programs rename a file that is whole."""
    if not any(isinstance(each, FileMoved) for each in events):
        return events
    folder = next((each.folder for each in events if isinstance(each, Started)), "")
    names: dict[str, str] = {}  # the last one, by the name under which a file was written
    found: dict[int, str] = {}  # that of each save, by its place among the events
    last: list[int] = []  # the places of the last save, and of the settings that are told beside it
    written, name = "", ""  # of the last save; no name: it was not renamed yet
    for place, each in enumerate(events):
        if is_save(each):
            last = [*last, place] if (each.path, "") == (written, name) else [place]
            written, name = each.path, ""
            # Of renames that are alike only the first is told
            found[place] = names.setdefault(written, written)
        elif isinstance(each, FileMoved) and written and not each.copied:
            moved = moved_name(folder, name or written, each)
            if moved != (name or written):
                names[written] = name = moved
                found.update(dict.fromkeys(last, moved))
    return tuple(
        replace(each, path=found[place]) if is_save(each) else each
        for place, each in enumerate(events)
    )


def is_save(event: Event) -> TypeGuard[Saved | SavedAgain | ModelSettings]:
    is_saved = isinstance(event, ModelSettings) and not event.loaded
    return is_saved or isinstance(event, Saved | SavedAgain)


def moved_name(folder: str, path: str, move: FileMoved) -> str:
    """Returns the name of a file, of a checkpoint or of what is in a folder, after a file or a folder was renamed."""
    saved, source = (os.path.normpath(os.path.join(folder, each)) for each in (path, move.source))
    if saved == source:
        return move.target
    if f"{saved}{INDEX}" == source:
        return move.target.removesuffix(INDEX)
    inside = saved.startswith(f"{source}{os.sep}")
    return os.path.join(move.target, os.path.relpath(saved, source)) if inside else path


def read_events(path: Path) -> tuple[Event, ...]:
    """Returns the events in a file. A crash may have cut off its last line, which is left out then."""
    lines = path.read_text(errors="replace").split("\n") if path.exists() else [""]
    return tuple(map(from_json, lines[:-1]))


def observer_failures(recordings: list[Recording]) -> tuple[str, ...]:
    """Returns what went wrong in the observer, so that not all of the program was seen."""
    failures = [event for recording in recordings for event in recording.of(ObserverFailed)]
    return tuple(dict.fromkeys(f"{event.handler}: {event.error}" for event in failures))


def stack_of(raised: ExceptionRaised) -> Stack:
    """Returns the program's lines in a traceback. Those of a traced function are in its message, and are further in."""
    return (*raised.traced, *(frame for frame in raised.location if frame not in raised.traced))
