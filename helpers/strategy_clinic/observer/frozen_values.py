"""Observes what a trace has frozen: numbers and optimizers that change afterwards, and random numbers that are drawn once."""

from __future__ import annotations

import weakref
from typing import Any

from .context import Context
from .events import CounterFrozen, Frame, PythonValueFrozen, RandomNumberFrozen, Stack
from .patching import Call
from .python_reads import (
    UNKNOWN,
    Held,
    NumberRead,
    RandomDraw,
    Reads,
    each_generator,
    reads_of,
    state_of,
)

# Methods of a dataset that trace their function at once, and call its graph for each element.
TRACE_AT_ONCE = "map", "flat_map", "interleave", "filter", "scan"
ENOUGH_CALLS = 2  # of one graph, after which a counter or a random number should have changed


class TracedFunction:
    """What a tf.function reads, and which values its graphs have."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.first = [read.lookup() for read in reads.numbers]  # before the first trace
        self.states = [state_of(draw.generator) for draw in each_generator(reads.draws)]
        self.traced: list[set[Any]] = []
        self.drawn: list[RandomDraw] = []
        self.traces = self.calls = 0  # calls of graphs that exist
        self.last_call = 0

    def after_trace(self, reads: Reads) -> None:
        """Keeps the values after a trace; layers that were built in it are known only now."""
        if not self.traces:
            draws = each_generator(self.reads.draws)
            self.drawn = [
                draw for draw, state in zip(draws, self.states) if state_of(draw.generator) != state
            ]
            before = dict(zip(map(key_of, self.reads.numbers), self.first))
            self.reads = reads
            self.first = [before.get(key_of(read), UNKNOWN) for read in reads.numbers]
            self.traced = [{first} for first in self.first]
        for read, values in zip(self.reads.numbers, self.traced):
            values.add(read.lookup())


def key_of(read: NumberRead) -> tuple[Frame, str]:
    return read.frame, read.name


class FrozenValues:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.functions: weakref.WeakKeyDictionary[Any, TracedFunction] = weakref.WeakKeyDictionary()

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        function = type(tf.function(lambda: None))
        wrap(function, "__call__", before=self.call_begins, after=self.call_ended)
        for name in TRACE_AT_ONCE:
            wrap(tf.data.Dataset, name, before=self.map_begins, after=self.mapped)

    def reads_of(self, function: Any, call: Call | None = None) -> Reads:
        """Returns what a function reads; `call` is the call of it, if it is called now."""
        given = (call.args[1:], call.kwargs) if call else ()
        return reads_of(function, self.context.provenance.is_own, *given)

    # Traced functions

    def call_begins(self, call: Call) -> None:
        import tensorflow as tf

        if call.owner not in self.functions and tf.executing_eagerly():
            self.functions[call.owner] = TracedFunction(self.reads_of(call.owner, call))

    def call_ended(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        known = self.functions.get(call.owner)
        if known is None or not tf.executing_eagerly():
            return
        known.last_call = self.context.count("use")
        traces = call.owner.experimental_get_tracing_count()
        if traces != known.traces:
            reads = known.reads if known.traces else self.reads_of(call.owner, call)
            known.after_trace(reads)
            known.traces = traces
        elif traces:
            known.calls += 1
            self.compare(known)

    def called_after(self, time: int) -> list[Any]:
        """Returns the functions that were called after a time, as the context counts uses."""
        return [function for function, each in self.functions.items() if each.last_call > time]

    def compare(self, known: TracedFunction) -> None:
        for i, read in enumerate(known.reads.numbers):
            value = read.lookup()
            if value is not UNKNOWN and value not in known.traced[i] and value == value:
                self.report_value(read, known, i, value)
        if known.calls == ENOUGH_CALLS:
            for draw in known.drawn:
                self.report_draw(draw)
            self.report_counters(known)

    def report_value(self, read: NumberRead, known: TracedFunction, i: int, value: Any) -> None:
        if self.context.is_first("frozen", read.frame, read.name):
            traced = known.first[i]
            if traced is UNKNOWN:
                traced = next(each for each in known.traced[i] if each is not UNKNOWN)
            frame = read.frame
            values, is_optimizer = (str(traced), str(value)), isinstance(value, Held)
            event = PythonValueFrozen(
                self.stack(frame), read.name, frame.function, *values, is_optimizer
            )
            self.context.emit(event)

    def report_draw(self, draw: RandomDraw) -> None:
        if self.context.is_first("drawn", draw.frame):
            frame = draw.frame
            self.context.emit(RandomNumberFrozen(self.stack(frame), draw.name, frame.function))

    def report_counters(self, known: TracedFunction) -> None:
        """Reports numbers that the function counts up itself, which it does only while it is traced."""
        for i, read in enumerate(known.reads.numbers):
            frame = known.reads.counted.get(read.name)
            counted = frame is not None and not read.asks_whether_first
            first, value = known.first[i], read.lookup()
            changed = UNKNOWN not in (first, value) and first != value
            is_new = counted and changed and value in known.traced[i]
            if frame and is_new and self.context.is_first("counted", frame, read.name):
                event = CounterFrozen(self.stack(frame), read.name, frame.function, str(value))
                self.context.emit(event)

    def stack(self, frame: Frame) -> Stack:
        callers = self.context.provenance.stack()
        return (frame, *(caller for caller in callers if caller != frame))

    # Datasets

    def map_begins(self, call: Call) -> None:
        given = [*call.args[1:], *call.kwargs.values()]
        reads = self.reads_of(next(filter(callable, given), None))
        call.state = [(draw, state_of(draw.generator)) for draw in each_generator(reads.draws)]

    def mapped(self, _: Any, call: Call) -> None:
        for draw, state in call.state or ():
            if state_of(draw.generator) != state:
                self.report_draw(draw)
