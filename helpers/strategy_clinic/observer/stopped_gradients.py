"""Tells which variables a loss depends on only through `tf.stop_gradient`: their gradients are None on purpose."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import Owner
from .patching import Call
from .variables import Variables, captures_of, copies_of

STOPS = "StopGradient", "PreventGradient"  # types of operations
Numbers = tuple[int, ...]  # of variables


class ThreadState(threading.local):
    stops = (
        False  # the program has called it outside of graphs; each replica of a step has a thread
    )


class StoppedGradients:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.thread = ThreadState()

    def watch(self) -> None:
        wrap = self.context.patches.wrap
        wrap(tf_internals.gen_array_ops, "stop_gradient", before=self.stop_called)

    def stop_called(self, call: Call) -> None:
        import tensorflow as tf

        if tf.executing_eagerly() and self.context.provenance.call_site()[1] is Owner.USER:
            self.thread.stops = True

    def among(self, numbers: Numbers, targets: Sequence[Any]) -> Numbers:
        """Returns those of these variables that lead to what is differentiated, and not without `stop_gradient`.

        Outside of graphs nobody knows what leads to what: a call of the program in this thread counts for all.
        """
        import tensorflow as tf

        if not numbers or tf.executing_eagerly():
            return numbers if self.thread.stops else ()
        leading, open_ways = self.read_for(targets, ()), self.read_for(targets, STOPS)
        return tuple(number for number in numbers if number in leading - open_ways)

    def read_for(self, targets: Sequence[Any], stops: Collection[str]) -> set[int]:
        """Returns the variables from which tensors of a graph are computed by ways without operations of these types."""
        handles = {id(each) for each in Ways(stops).leading_to(targets)}
        return {
            record.number
            for record in self.variables.alive()
            for copy in copies_of(record.variable)
            if id(getattr(copy, "handle", None)) in handles
        }


class Ways:
    """Walks backward over the operations of graphs, also into the functions that they call and out of them."""

    def __init__(self, stops: Collection[str]) -> None:
        self.stops = stops
        self.given: dict[tuple[int, str], list[Any]] = {}  # what arguments of called functions get

    def leading_to(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns the values outside of all graphs, such as handles of variables, that lead to these tensors."""
        waiting, seen, outside = [*tensors], set(), []
        while waiting:
            tensor = waiting.pop()
            if not is_symbolic(tensor):
                outside.append(tensor)
            elif key_of(tensor) not in seen:
                seen.add(key_of(tensor))
                waiting += self.before(tensor)
        return outside

    def before(self, tensor: Any) -> list[Any]:
        operation = tensor.op
        if operation.type in self.stops:
            return []
        if operation.type == "Placeholder":
            captured = [outer for outer, inner in captures_of(tensor.graph) if inner is tensor]
            return captured + self.given.get(key_of(tensor), [])
        bodies = [
            body
            for body in functions_of(operation)
            if len(body.outputs) == len(operation.outputs)  # other than a condition
        ]
        for body in bodies:
            self.give(operation, body)
        results = [body.outputs[tensor.value_index] for body in bodies]
        return results or list(operation.inputs)

    def give(self, operation: Any, body: Any) -> None:
        """Keeps what a called function gets: the last inputs of the operation, and in a loop its own results."""
        arguments = list(body.inputs)
        inputs = list(operation.inputs)[-len(arguments) :] if arguments else []
        results = list(body.outputs) if operation.type.endswith("While") else []
        for values in (inputs, results):
            for argument, value in zip(arguments, values):
                self.given.setdefault(key_of(argument), []).append(value)


def is_symbolic(tensor: Any) -> bool:
    import tensorflow as tf

    return hasattr(tensor, "op") and not isinstance(tensor, tf.__internal__.EagerTensor)


def key_of(tensor: Any) -> tuple[int, str]:
    return id(tensor.graph), tensor.name


def functions_of(operation: Any) -> Iterator[Any]:
    """Yields the graphs of the functions that an operation calls."""
    find = tf_internals.read(operation.graph, "_get_function")
    for attribute in operation.op_def.attr:
        if attribute.type == "func":
            function = find(operation.get_attr(attribute.name).name)
            if function is not None:
                yield function.graph
