"""Observes whether replicas draw the same random numbers in a step.

Outside of graphs the numbers themselves are compared, and in a graph the operations that lead to them: two operations of one kind
draw the same numbers if all their inputs come from the same constants, variables and arguments.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import NumbersRepeated
from .variables import Variables, copies_of

MOST_DRAWS = 200  # of a replica, in one graph or outside of graphs, that are compared
MOST_OPERATIONS = 300  # that lead to random numbers
LEAST_NUMBERS = 4  # that are compared; fewer may be the same by chance
SEEDS = {
    "seed",
    "seed2",
}  # of an operation that draws; with none of them, it draws what nobody knows
SHAPES = "shape", "_class", "_output_shapes"  # attributes that say nothing about the numbers


class Unknown(Exception):
    """What leads to random numbers may be different for each replica."""


class RepeatedNumbers:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.draws: dict[tuple[Any, int], int] = {}  # by graph and replica, how many there were
        self.first: dict[
            tuple[Any, int], Any
        ] = {}  # by graph and number, what the first replica drew
        self.varied: dict[Any, Any] = {}  # by line, the last numbers that replicas repeated

    def drawn(self, numbers: Any) -> None:
        """Compares numbers that a replica has drawn with those of the first replica at the same point."""
        import tensorflow as tf

        # `replica_id_in_sync_group` adds an operation to the graph, and that gives others other seeds.
        replica = tf_internals.read(tf.distribute.get_replica_context(), "_replica_id")
        if not isinstance(replica, int) or not numbers.dtype.is_floating:
            return
        eager = not hasattr(numbers, "graph") or tf.executing_eagerly()
        place = 0 if eager else self.context.serial(numbers.graph)
        draws = self.draws[place, replica] = self.draws.get((place, replica), 0) + 1
        if draws > MOST_DRAWS:
            return
        try:
            drawn = values_of(numbers) if eager else self.origin_of(numbers)
        except Unknown:
            drawn = None
        if replica == 0:
            self.first[place, draws] = drawn
        elif drawn is not None and drawn == self.first.get((place, draws)):
            self.repeated(numbers, drawn, eager)

    def repeated(self, numbers: Any, drawn: Any, eager: bool) -> None:
        """Reports numbers that are others in each step: those that never change are meant to be constants."""
        import tensorflow as tf

        site, owner = self.context.provenance.call_site()
        changes = drawn != self.varied.setdefault(site, drawn) if eager else changes_in(drawn)
        if changes and self.context.is_first("numbers repeated", site, owner):
            shape = tuple(numbers.shape.as_list()) if numbers.shape.rank else ()
            replicas = int(tf.distribute.get_strategy().num_replicas_in_sync)
            stack = self.context.provenance.stack()
            self.context.emit(NumbersRepeated(stack, owner, shape, replicas))

    # What leads to numbers in a graph

    def origin_of(self, numbers: Any) -> Any:
        """Returns what is equal for two tensors that have the same value; raises Unknown where nobody knows."""
        return self.origin(numbers, {}, [])

    def origin(self, tensor: Any, known: dict[int, Any], counted: list[None]) -> Any:
        if id(tensor) not in known:
            counted.append(None)
            if len(counted) > MOST_OPERATIONS:
                raise Unknown
            known[id(tensor)] = self.new_origin(tensor, known, counted)
        return known[id(tensor)]

    def new_origin(self, tensor: Any, known: dict[int, Any], counted: list[None]) -> Any:
        import tensorflow as tf

        if not hasattr(tensor, "op") or isinstance(tensor, tf.__internal__.EagerTensor):
            return ("value", values_of(tensor))
        operation = tensor.op
        if operation.type == "Placeholder":
            return self.of_placeholder(tensor, known, counted)
        if operation.type == "ReadVariableOp":
            return ("variable", self.variable_of(operation.inputs[0]))
        attributes = attributes_of(operation)
        if operation.op_def.is_stateful and not SEEDS & attributes.keys():
            raise Unknown
        inputs = [each for each in operation.inputs if each.dtype != tf.resource]
        if len(inputs) < len(operation.inputs):
            raise Unknown
        # The shapes of what is drawn may be computed from the part of each replica.
        is_drawn = operation.type.startswith(("Random", "StatelessRandom")) and len(inputs) > 0
        used = (
            inputs[1:] if is_drawn and operation.type != "StatelessRandomGetKeyCounter" else inputs
        )
        origins = tuple(self.origin(each, known, counted) for each in used)
        described = tuple(sorted(attributes.items()))
        return (operation.type, tensor.value_index, described, origins)

    def of_placeholder(self, tensor: Any, known: dict[int, Any], counted: list[None]) -> Any:
        """Returns what a graph has captured; an argument of its function is itself."""
        for outer, inner in captures_of(tensor.graph):
            if inner is tensor:
                return self.origin(outer, known, counted)
        return ("argument", id(tensor))

    def variable_of(self, handle: Any) -> int:
        """Returns the number of a variable that has one value for all replicas."""
        outer = next((o for o, inner in captures_of(handle.graph) if inner is handle), handle)
        for record in self.variables.alive():
            variable = record.variable
            copies = copies_of(variable) if variable is not None else ()
            if any(getattr(copy, "handle", None) is outer for copy in copies):
                if "ON_READ" in str(getattr(variable, "synchronization", "")):
                    raise Unknown
                written = any(each.type != "ReadVariableOp" for each in handle.consumers())
                if len(copies) == 1 and written:
                    raise Unknown
                return record.number
        raise Unknown


def captures_of(graph: Any) -> list[tuple[Any, Any]]:
    return list(getattr(graph, "captures", ()))


def attributes_of(operation: Any) -> dict[str, str]:
    """Returns the attributes of an operation as text; a seed of 0, which is none, is empty."""
    attributes = operation.node_def.attr
    return {
        name: attributes[name].SerializeToString().hex()
        for name in attributes
        if name not in SHAPES and not (name in SEEDS and attributes[name].i == 0)
    }


def values_of(tensor: Any) -> Any:
    values = tensor.numpy()
    return hashlib.sha1(values.tobytes()).hexdigest()


def changes_in(origin: Any) -> bool:
    """Tells whether numbers come from anything but constants, or from an operation that counts its calls."""
    kind, *rest = origin
    if kind in ("variable", "argument"):
        return True
    described = dict(rest[1]) if len(rest) == 3 else {}
    return bool(SEEDS & described.keys()) or len(rest) == 3 and any(map(changes_in, rest[2]))
