"""Defines what all parts of an observer share: its settings, the file of events, and the patches."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .events import Event, LearningRateWritten, ObserverFailed, VariableRead, VariableWritten
from .identity_map import IdentityMap
from .patching import Patches, WrongCall
from .provenance import Provenance
from .stacks import StepCounter, child_file

MOST_MESSAGE = 300
SEED = 87654321  # TensorFlow's own for operations with a seed of their own: what those draw does not change
# Events while variables are loaded one after the other, of which one may be a learning rate.
GOES_ON = LearningRateWritten, VariableRead, VariableWritten
BATCHES = "batch", "padded_batch"  # the methods of a dataset that make batches of examples


@dataclass(frozen=True)
class Settings:
    """Where events are written, how the program is run, and what is changed in it."""

    events: str  # a file; those of other processes that the program starts are beside it
    devices: int = 1
    enter: str = (
        ""  # the view of the file system in which the process runs: a process in it and its root
    )
    steps: int = 0  # after which the program is stopped; 0: none
    seed: int = (
        0  # of random numbers for which the program chooses none; 0: they differ between runs
    )
    reseed: bool = False  # a seed that is given again is another one
    leader: int = 0  # the program's first process, in one that it has started; 0: this is the first
    hold: bool = (
        False  # the program's own variables exist until the end, where their values are reported
    )
    stay: bool = False  # the process waits to be killed when the program has finished
    reset: int = 0  # the variable that gets its first value again at the first checkpoint
    give: tuple[int, int] = (
        0,
        0,
    )  # the variable whose value at the first checkpoint the second one gets when it is made
    begin: tuple[int, float] = (0, 0.0)  # the variable that gets this value when it is made
    keras: int = 0  # the version of Keras that `tf.keras` is; 0: what the program takes
    replicas: int = 0  # that the program reads outside of its steps; 0: those that there are
    replace: tuple[str, ...] = ()  # parts of the step, by the values of `Replacement`
    die: bool = False  # the process is killed after the first save
    die_at_step: int = 0  # or after this number of steps
    die_in_save: int = 0  # or while this save is written, counted from 1
    uncounted: bool = False  # activations are not counted, which takes as long as tracing does
    view: str = (
        ""  # the folder for what is written outside of `own`; none: it is written where it belongs
    )
    own: tuple[str, ...] = ()  # folders in which the program writes directly
    tell: bool = False  # means over replicas that are computed in a graph are reported, by one more operation

    @property
    def is_changed(self) -> bool:
        """Tells whether the program computes something else than it would."""
        return bool(self.reset or self.give[0] or self.begin[0] or self.replicas or self.replace)

    @property
    def dies(self) -> bool:
        return bool(self.die or self.die_at_step or self.die_in_save)


class ThreadState(threading.local):
    busy = False  # handling an event: what handlers do is not the program's doing
    has_gradients = False  # that it has computed and not yet applied


class Context:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Each process that the program starts has a file of its own.
        self.events = own_file(settings) if settings.leader else settings.events
        self.heading: Event | None = None  # which is to be the first event there
        self.written = 0  # events there
        self.first_process = settings.leader or os.getpid()  # of the program
        self.provenance = Provenance()
        self.steps = StepCounter(self.events)
        self.together: Callable[[], None] | None = None  # reports what belongs together
        self.after_step: list[Callable[[], None]] = []  # called after each step
        self.patches = Patches(self.guard)
        self.thread, self.stopped = ThreadState(), False
        self.seen: set[tuple[object, ...]] = set()
        self.counts: Counter[object] = Counter()
        self.trained_graphs: IdentityMap[bool] = IdentityMap()  # in which an update was traced
        self.graphs_with_gradients: IdentityMap[bool] = IdentityMap()
        self.has_gradients = False  # that were computed eagerly and not yet used
        self.serials: IdentityMap[int] = IdentityMap()
        self.next_serial = itertools.count(1)

    def gradients_computed(self) -> None:
        import tensorflow as tf

        self.thread.has_gradients = True
        if tf.executing_eagerly():
            self.has_gradients = True
        else:
            self.graphs_with_gradients[tf.compat.v1.get_default_graph()] = True

    def gradients_used(self) -> None:
        """Counts an update that the program makes without an optimizer: where it writes, gradients were computed before."""
        import tensorflow as tf

        if tf.executing_eagerly():
            is_update = self.has_gradients
        else:
            is_update = bool(self.graphs_with_gradients.get(tf.compat.v1.get_default_graph()))
        if is_update:
            self.update_made()

    def update_made(self) -> None:
        import tensorflow as tf

        self.thread.has_gradients = self.has_gradients = False
        self.count("applied")
        self.count("applied", "eagerly" if tf.executing_eagerly() else "in a graph")
        if not tf.executing_eagerly():
            self.trained_graphs[tf.compat.v1.get_default_graph()] = True

    def emit(self, event: Event) -> None:
        """Writes an event, whole or not at all, whatever becomes of the process afterwards.

        What is to be reported together, such as a load of one variable after the other, is reported before the next event.
        """
        if self.together and not isinstance(event, GOES_ON):
            report, self.together = self.together, None
            self.guard_always(report)
        lines = [each.to_json().encode() + b"\n" for each in (self.heading, event) if each]
        self.heading, self.written = None, self.written + len(lines)
        with open(self.events, "ab", buffering=0) as file:
            file.write(b"".join(lines))

    def guard(self, handler: Callable[..., Any], *arguments: Any) -> Any:
        """Returns what a handler returns. Its errors become events, and calls that it makes are not reported."""
        if self.thread.busy or self.stopped:
            return None
        self.thread.busy = True
        try:
            return handler(*arguments)
        except WrongCall:
            return None
        except Exception as error:
            name = getattr(handler, "__qualname__", repr(handler))
            if self.is_first("failed", name, type(error)):
                message = f"{type(error).__name__}: {error}"
                with contextlib.suppress(OSError):
                    self.emit(ObserverFailed(name, message[:MOST_MESSAGE]))
            return None
        finally:
            self.thread.busy = False

    def guard_always(self, handler: Callable[..., Any], *arguments: Any) -> Any:
        """Does the same also while another handler is running."""
        before, self.thread.busy = self.thread.busy, False
        try:
            return self.guard(handler, *arguments)
        finally:
            self.thread.busy = before

    def is_first(self, *key: object) -> bool:
        """Returns whether this key is new: most of what a program does, it does many times."""
        is_new = key not in self.seen
        self.seen.add(key)
        return is_new

    def forget(self, *key: object) -> None:
        """Makes a key new again."""
        self.seen.discard(key)

    def count(self, *key: object) -> int:
        self.counts[key] += 1
        return self.counts[key]

    @property
    def passes(self) -> int:
        """Iterations over data that have begun; one over a distributed dataset may count twice."""
        return self.counts[("iterators",)] + self.counts[("distributed iterators",)]

    def serial(self, thing: object) -> int:
        """Returns a number for an object that no other object gets."""
        return self.serials.setdefault(thing, lambda: next(self.next_serial))


def own_file(settings: Settings) -> str:
    """Returns the file for the events of this process, which the program has started."""
    return child_file(settings.events, os.getpid())


def flush_output() -> None:
    """Writes what the program has printed; it may have closed or replaced its output."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()


def kill_process(first: int) -> None:
    """Kills the program: its first process, and this one."""
    flush_output()
    for process in (first, os.getpid()):
        os.kill(process, signal.SIGKILL)
