"""Observes whether replicas draw the same random numbers in a step.

Outside of graphs the numbers themselves are compared, and in a graph the operations that lead to them: two operations of one kind
draw the same numbers if all their inputs come from the same constants, variables and arguments.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Any

from .context import Context
from .events import NumbersRepeated
from .patching import Call
from .variables import Variables, captures_of, copies_of, is_on_read, replica_now

MOST_DRAWS = 200  # of a replica, in one graph or outside of graphs, that are compared
MOST_OPERATIONS = 100  # that lead to random numbers
# The seeds of an operation that draws; with none of them, nobody knows what it draws.
SEEDS = {"seed", "seed2"}
# Operations whose first input is a shape, by how they begin; the others that begin so have another first input.
DRAWING = "Random", "TruncatedNormal", "Stateless"
OTHERS = "RandomShuffle", "StatelessRandomGet"
SHAPES = "shape", "_class", "_output_shapes"  # attributes that say nothing about the numbers


class Unknown(Exception):
    """What leads to random numbers may be different for each replica."""


class RepeatedNumbers:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.draws: dict[tuple[Any, int], int] = {}  # by graph and replica, how many there were
        # By graph and number, what the first replica drew.
        self.first: dict[tuple[Any, int], Any] = {}
        # By line, the numbers that replicas repeated first, and how many were drawn until then.
        self.varied: dict[Any, tuple[int, Any]] = {}
        # What leads to a tensor gets a number, by its operation and the numbers of its inputs.
        self.origins: dict[Any, int] = {}
        self.of_generator = threading.local()  # whose seed is drawn with next, in each thread
        self.changing: set[int] = set()  # those whose values change from step to step

    def watch_keras(self, keras: Any) -> None:
        self.context.patches.wrap(keras.random.SeedGenerator, "next", after=self.seed_taken)

    def seed_taken(self, _: Any, call: Call) -> None:
        self.of_generator.value = True

    def drawn(self, numbers: Any) -> None:
        """Compares numbers that a replica has drawn with those of the first replica at the same point."""
        import tensorflow as tf

        of_generator = getattr(self.of_generator, "value", False)
        self.of_generator.value = False
        replica = replica_now()
        if replica is None or not numbers.dtype.is_floating:
            return
        eager = not hasattr(numbers, "graph") or tf.executing_eagerly()
        place = 0 if eager else self.context.serial(numbers.graph)
        draws = self.draws[place, replica] = self.draws.get((place, replica), 0) + 1
        if draws > MOST_DRAWS:
            return
        try:
            drawn = values_of(numbers) if eager else self.origin(numbers, {})
        except Unknown:
            drawn = None
        if replica == 0:
            self.first[place, draws] = drawn
        elif drawn is not None and drawn == self.first.get((place, draws)):
            self.repeated(numbers, drawn, draws if eager else None, of_generator)

    def repeated(self, numbers: Any, drawn: Any, draws: int | None, of_generator: bool) -> None:
        """Reports whether repeated numbers are others in each step; outside of graphs that is known from the second step on."""
        import tensorflow as tf

        site, owner = self.context.provenance.call_site()
        if draws is None:
            changes = drawn in self.changing
        else:
            first, before = self.varied.setdefault(site, (draws, drawn))
            if draws == first:
                return
            changes = drawn != before
        if self.context.is_first("numbers repeated", site, owner, changes, of_generator):
            shape = tuple(numbers.shape.as_list()) if numbers.shape.rank else ()
            replicas = int(tf.distribute.get_strategy().num_replicas_in_sync)
            stack = self.context.provenance.stack()
            self.context.emit(NumbersRepeated(stack, owner, shape, replicas, changes, of_generator))

    # What leads to numbers in a graph

    def origin(self, tensor: Any, known: dict[int, int | None]) -> int:
        """Returns a number that is equal for two tensors with the same value; raises Unknown where nobody knows."""
        if id(tensor) not in known:
            if len(known) == MOST_OPERATIONS:
                raise Unknown
            known[id(tensor)] = None
            known[id(tensor)] = self.new_origin(tensor, known)
        origin = known[id(tensor)]
        if origin is None:  # a loop of a graph leads to itself
            raise Unknown
        return origin

    def new_origin(self, tensor: Any, known: dict[int, int | None]) -> int:
        import tensorflow as tf

        if not hasattr(tensor, "op") or isinstance(tensor, tf.__internal__.EagerTensor):
            return self.number_of(("value", values_of(tensor)), False)
        operation = tensor.op
        if operation.type == "Placeholder":
            outer = next((o for o, i in captures_of(tensor.graph) if i is tensor), None)
            if outer is not None:
                return self.origin(outer, known)
            return self.number_of(("argument", id(tensor)), True)
        if operation.type == "ReadVariableOp":
            return self.number_of(("variable", self.variable_of(operation.inputs[0])), True)
        attributes = attributes_of(operation)
        has_seed = bool(SEEDS & attributes.keys())
        if operation.op_def.is_stateful and not has_seed:
            raise Unknown
        inputs = [*operation.inputs]
        if any(each.dtype == tf.resource for each in inputs):
            raise Unknown
        if operation.type.startswith(DRAWING) and not operation.type.startswith(OTHERS):
            inputs = inputs[1:]  # the shape may be computed from the part of each replica
        origins = tuple(self.origin(each, known) for each in inputs)
        described = tuple(sorted(attributes.items()))
        key = operation.type, tensor.value_index, described, origins
        return self.number_of(key, has_seed or bool(self.changing & {*origins}))

    def number_of(self, key: Any, changes: bool) -> int:
        number = self.origins.setdefault(key, len(self.origins))
        if changes:
            self.changing.add(number)
        return number

    def variable_of(self, handle: Any) -> int:
        """Returns the number of a variable that has one value for all replicas."""
        record = self.variables.record_of_handle(handle)
        if record is None:
            raise Unknown
        written = any(each.type != "ReadVariableOp" for each in handle.consumers())
        if is_on_read(record.variable) or len(copies_of(record.variable)) == 1 and written:
            raise Unknown
        return record.number


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
