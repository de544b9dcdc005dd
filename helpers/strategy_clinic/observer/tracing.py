"""Observes calls of traced functions, and why they are traced again."""

from __future__ import annotations

import types
import weakref
from collections import Counter
from typing import Any

from .context import Context
from .events import FunctionRetraced, RetraceCause, Stack
from .patching import Call

Given = tuple[tuple[Any, ...], tuple[str, ...]]  # the numbers and the shapes that a call was given
# Calls that all traced, after which they are reported. A function, a shape or an object may be new for a reason, a few times.
ENOUGH = dict.fromkeys(RetraceCause, 8) | {RetraceCause.NUMBER: 5}
LEAST_TRACES = 3  # for each call that uses a graph again: a schedule may come back to a number


class Tracing:
    def __init__(self, context: Context) -> None:
        self.context = context
        # By line of the program, why its calls have traced; None once graphs were used again more than now and then.
        self.sites: dict[Any, list[tuple[RetraceCause, Given]] | None] = {}
        self.reused: Counter[Any] = Counter()
        self.traces: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.made_at: weakref.WeakKeyDictionary[Any, Stack] = weakref.WeakKeyDictionary()
        self.functions: weakref.WeakSet[types.FunctionType] = (
            weakref.WeakSet()
        )  # that were arguments

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
        site, _ = provenance.call_site()
        causes = self.sites.setdefault(site, [])
        if causes is None or not tf.executing_eagerly() or not provenance.called_by_program():
            return
        known = self.traces.get(call.owner)
        traced = call.owner.experimental_get_tracing_count()
        if traced == known:
            self.reused[site] += 1
            if self.reused[site] * LEAST_TRACES > len(causes):
                self.sites[site] = None
            return
        self.traces[call.owner] = traced
        positional = call.args[1:]
        causes.append(self.cause(known is None, (positional, call.kwargs), causes))
        self.report(causes, positional, self.made_at.get(call.owner, ()))

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

    def report(
        self, causes: list[tuple[RetraceCause, Given]], args: tuple[Any, ...], made_at: Stack
    ) -> None:
        """Reports once that enough calls have traced, all but the first of them for one cause."""
        import tensorflow as tf

        last = causes[-1][0]
        if len(causes) == ENOUGH[last] and all(cause is last for cause, _ in causes[1:]):
            with_numbers = (
                i for i, arg in enumerate(args) if any(map(is_number, tf.nest.flatten(arg)))
            )
            own = made_at if last is RetraceCause.TRACED_FUNCTION else ()
            stack = self.context.provenance.stack()
            self.context.emit(
                FunctionRetraced(stack, len(causes), last, next(with_numbers, 0), own)
            )


def is_number(value: Any) -> bool:
    return type(value) in (int, float)
