"""Observes calls of traced functions, and why they are traced again."""

from __future__ import annotations

import types
import weakref
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .context import Context
from .events import FunctionRetraced, RetraceCause, Stack
from .patching import Call

Given = tuple[tuple[Any, ...], tuple[str, ...]]  # the numbers and the shapes that a call was given
# Calls that all traced, after which they are reported. A function, a shape or an object may be new for a reason, a few times.
ENOUGH = dict.fromkeys(RetraceCause, 8) | {RetraceCause.NUMBER: 5}
# The same for a fraction that is new in each pass over the data. A whole number may be one of a few settings.
ENOUGH_FRACTIONS = 3
# The same for a whole number that counts the calls.
ENOUGH_COUNTS = 4
# Passes from one trace to the next: over data for training and for evaluation, each of which may count twice.
MOST_PASSES = 4
LEAST_TRACES = 3  # for each call that uses a graph again: a schedule may come back to a number


@dataclass
class CallSite:
    """A line of the program, why its calls have traced, and how many passes over data had begun then."""

    causes: list[tuple[RetraceCause, Given]] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    reused: int = 0  # calls that used a graph again
    is_reused: bool = False  # more than now and then
    reported: bool = False

    @property
    def last_numbers(self) -> tuple[Any, ...]:
        """The numbers that the last call which traced was given."""
        return self.causes[-1][1][0] if self.causes else ()

    @property
    def is_new_in_each_pass(self) -> bool:
        """Whether each trace came as many passes after the one before, and soon."""
        apart = {later - earlier for earlier, later in pairwise(self.passes)}
        return len(apart) == 1 and 0 < max(apart) <= MOST_PASSES

    @property
    def counts_up(self) -> bool:
        """Whether each call that traced was given the number after that of the one before."""
        numbers = [given[0] for _, given in self.causes]
        return all(map(is_next, numbers, numbers[1:]))

    @property
    def enough(self) -> int:
        """The calls that trace after which this is reported; 0: it is not."""
        cause, _ = self.causes[-1]
        if not self.is_reused:
            is_count = cause is RetraceCause.NUMBER and self.counts_up
            return ENOUGH_COUNTS if is_count else ENOUGH[cause]
        if cause is not RetraceCause.NUMBER or not self.is_new_in_each_pass:
            return 0
        is_fraction = any(isinstance(number, float) for number in self.last_numbers)
        return ENOUGH_FRACTIONS if is_fraction else ENOUGH[cause]


class Tracing:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.sites: dict[Any, CallSite | None] = {}  # None: its calls use graphs again
        self.traces: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.made_at: weakref.WeakKeyDictionary[Any, Stack] = weakref.WeakKeyDictionary()
        # Those that were arguments.
        self.functions: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()

    def watch(self) -> None:
        import tensorflow as tf

        kind = type(tf.function(lambda: None))
        self.context.patches.wrap(kind, "__init__", after=self.made)
        self.context.patches.wrap(kind, "__call__", after=self.called)

    def made(self, _: Any, call: Call) -> None:
        self.made_at[call.owner] = self.context.provenance.stack()

    def called(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        provenance = self.context.provenance
        line, _ = provenance.call_site()
        if line not in self.sites:
            self.sites[line] = CallSite()
        site = self.sites[line]
        if site is None or not tf.executing_eagerly() or not provenance.called_by_program():
            return
        known = self.traces.get(call.owner)
        traced = call.owner.experimental_get_tracing_count()
        positional = call.args[1:]
        given = positional, call.kwargs
        if traced == known:
            site.reused += 1
            site.is_reused |= site.reused * LEAST_TRACES > len(site.causes)
            if site.is_reused and not has_numbers_of_last(site, given):
                self.sites[line] = None
            return
        self.traces[call.owner] = traced
        site.causes.append(self.cause(known is None, given, site.causes))
        site.passes.append(self.context.passes)
        self.report(site, positional, self.made_at.get(call.owner, ()))

    def cause(
        self, first_call: bool, args: Any, earlier: list[tuple[RetraceCause, Given]]
    ) -> tuple[RetraceCause, Given]:
        """Returns why this call could not use the graph of an earlier one, and what it was given."""
        import tensorflow as tf

        values = tf.nest.flatten(args, expand_composites=True)
        functions = [value for value in values if isinstance(value, types.FunctionType)]
        new = [function for function in functions if function not in self.functions]
        self.functions.update(new)
        numbers = tuple(filter(is_number, values))
        shapes = tuple(str(value.shape) for value in values if hasattr(value, "shape"))
        if first_call:
            cause = RetraceCause.TRACED_FUNCTION
        elif new:
            cause = RetraceCause.FUNCTION
        elif numbers not in [each for _, (each, _) in earlier]:
            cause = RetraceCause.NUMBER
        elif shapes not in [each for _, (_, each) in earlier]:
            cause = RetraceCause.SHAPE
        else:
            cause = RetraceCause.OBJECT
        return cause, (numbers, shapes)

    def report(self, site: CallSite, args: tuple[Any, ...], made_at: Stack) -> None:
        """Reports once that enough calls have traced, all but the first of them for one cause."""
        import tensorflow as tf

        causes = site.causes
        last = causes[-1][0]
        is_enough = len(causes) == site.enough and not site.reported
        if is_enough and all(cause is last for cause, _ in causes[1:]):
            site.reported = True
            with_numbers = (
                i for i, arg in enumerate(args) if any(map(is_number, tf.nest.flatten(arg)))
            )
            own = made_at if last is RetraceCause.TRACED_FUNCTION else ()
            stack = self.context.provenance.stack()
            self.context.emit(
                FunctionRetraced(stack, len(causes), last, next(with_numbers, 0), own)
            )


def has_numbers_of_last(site: CallSite, args: Any) -> bool:
    """Tells whether a call uses the graph of the last one that traced, by a number that is the same."""
    import tensorflow as tf

    if not site.last_numbers:  # most calls: their arguments need not be searched
        return False
    values = tf.nest.flatten(args, expand_composites=True)
    return tuple(filter(is_number, values)) == site.last_numbers


def is_next(numbers: tuple[Any, ...], later: tuple[Any, ...]) -> bool:
    """Tells whether numbers differ in one that is one greater."""
    apart = [b - a for a, b in zip(numbers, later) if a != b]
    return len(numbers) == len(later) and apart == [1]


def is_number(value: Any) -> bool:
    return type(value) in (int, float)
