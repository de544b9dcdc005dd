"""Observes calls of traced functions, and why they are traced again."""

from __future__ import annotations

import types
import weakref
from typing import Any

from .context import Context
from .events import FunctionRetraced, RetraceCause
from .patching import Call

Numbers = tuple[Any, ...]
# Calls that all traced, after which they are reported. A function may be new for a reason, a few times.
ENOUGH = {RetraceCause.NUMBER: 5, RetraceCause.FUNCTION: 8, RetraceCause.TRACED_FUNCTION: 8}


class Tracing:
    def __init__(self, context: Context) -> None:
        self.context = context
        # By line of the program, why its calls have traced; None once a graph was used again.
        self.sites: dict[Any, list[tuple[RetraceCause, Numbers]] | None] = {}
        self.traces: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.functions: weakref.WeakSet[types.FunctionType] = (
            weakref.WeakSet()
        )  # that were arguments

    def watch(self) -> None:
        import tensorflow as tf

        self.context.patches.wrap(type(tf.function(lambda: None)), "__call__", after=self.called)

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
            self.sites[site] = None
            return
        self.traces[call.owner] = traced
        positional = call.args[1:]
        values = tf.nest.flatten((positional, call.kwargs))
        causes.append((self.cause(known is None, values), tuple(filter(is_number, values))))
        self.report(causes, positional)

    def cause(self, first_call: bool, values: list[Any]) -> RetraceCause:
        """Returns why this call could not use the graph of an earlier one."""
        functions = [value for value in values if isinstance(value, types.FunctionType)]
        new = [function for function in functions if function not in self.functions]
        self.functions.update(new)
        if first_call:
            return RetraceCause.TRACED_FUNCTION
        return RetraceCause.FUNCTION if new else RetraceCause.NUMBER

    def report(self, causes: list[tuple[RetraceCause, Numbers]], args: tuple[Any, ...]) -> None:
        """Reports once that enough calls have traced, all but the first of them for one cause."""
        import tensorflow as tf

        last = causes[-1][0]
        same_cause = all(cause is last for cause, _ in causes[1:])
        all_new = len({numbers for _, numbers in causes}) == len(causes)
        if (
            same_cause
            and (all_new or last is not RetraceCause.NUMBER)
            and len(causes) == ENOUGH[last]
        ):
            with_numbers = (
                i for i, arg in enumerate(args) if any(map(is_number, tf.nest.flatten(arg)))
            )
            stack = self.context.provenance.stack()
            self.context.emit(FunctionRetraced(stack, len(causes), last, next(with_numbers, 0)))


def is_number(value: Any) -> bool:
    return type(value) in (int, float)
