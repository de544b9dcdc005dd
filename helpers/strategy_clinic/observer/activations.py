"""Counts activations: what a traced step computes before its gradients and keeps for them.

The graph of a step is read once, while it is traced. The backward pass are those operations that `GradientTape.gradient` adds to
it and needs for its result, and that read a gradient or have to wait for one. What they read of all others is kept until then:
also of other added ones, since TensorFlow executes each operation as soon as its inputs are there. Nothing is added to the graph.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..base import tf_internals
from .context import Context
from .events import Activations
from .patching import Call
from .variables import replica_now

MOST_OPERATIONS = 30_000  # of a graph that is copied
# Numbers of examples for which sizes are computed: two give what each example adds.
PROBES = 6, 12
# Their result is their input's buffer, and another name for it.
ALIASES = {
    "Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "EnsureShape", "CheckNumerics",
    "StopGradient", "PreventGradient",
}  # fmt: skip
# Their results are held by variables or by the graph, are shapes, or are zeros to which gradients are added.
NOT_COMPUTED = {
    "Const", "ReadVariableOp", "VarHandleOp", "Shape", "ShapeN", "Size", "Rank", "BroadcastGradientArgs",
    "TensorListElementShape", "TensorListLength", "TensorListReserve", "EmptyTensorList",
    "Fill", "ZerosLike",
}  # fmt: skip
LOOPS = {"While", "StatelessWhile"}
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
ONES = re.compile(r"(^|/)ones(_like)?(_\d+)?$")
Sizes = tuple[int, int]  # bytes for each number of examples in PROBES


class Kept(NamedTuple):
    """What one call of `gradient` reads of the operations before it."""

    start: int  # the number of operations before it
    tensors: dict[Any, tuple[int, Sizes]]  # with the number of the operation that made each
    unknown: frozenset[str]  # tensors whose size is not known


class Steps:
    """The calls of `gradient` in the graph of one replica."""

    def __init__(self, graph: Any, replica: Any) -> None:
        self.graph, self.replica = weakref.ref(graph), replica
        self.calls: list[Kept] = []

    def most(self) -> Activations:
        """Returns the most that is kept when one of the calls begins: for it, and for later calls."""
        sizes = [self.held_at(i) for i in range(len(self.calls))]
        unknown = frozenset().union(*(each.unknown for each in self.calls))
        few, many = max(sizes)
        per_example = (many - few) / (PROBES[1] - PROBES[0])
        return Activations(round(few - per_example * PROBES[0]), round(per_example), len(unknown))

    def held_at(self, number: int) -> Sizes:
        start, held = self.calls[number].start, {}
        for call in self.calls[number:]:
            held.update({key: size for key, (order, size) in call.tensors.items() if order < start})
        return added(held.values())


class ActivationCounts:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.traced: list[Steps] = []  # since the last step ended
        self.most: Activations | None = None

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        wrap(tf.GradientTape, "gradient", before=self.gradient_begins, after=self.differentiated)

    def gradient_begins(self, call: Call) -> None:
        import tensorflow as tf

        if not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            call.state = graph, len(graph.get_operations())

    def differentiated(self, gradients: Any, call: Call) -> None:
        if not call.state:
            return
        graph, start = call.state
        replica = replica_now()
        traced = self.traced  # another thread may end the step meanwhile
        if traced and traced[0].replica != replica:
            return  # every replica traces the same
        kept = kept_for(graph, start, makers(call["output_gradients"]), makers(gradients))
        if not traced or traced[-1].graph() is not graph:
            traced.append(Steps(graph, replica))
        traced[-1].calls.append(kept)

    def step_ended(self, trains: bool) -> None:
        """Takes what was traced in this step, if the step trains."""
        found = [each.most() for each in self.traced] if trains else []
        self.traced = []
        self.most = max((self.most, *found) if self.most else found, key=size_of, default=None)


def size_of(activations: Activations) -> int:
    return activations.fixed + activations.per_example * PROBES[1]


def makers(tensors: Any) -> set[str]:
    """Returns the names of the operations whose results some tensors are."""
    import tensorflow as tf

    flat = tf.nest.flatten(tensors, expand_composites=True)
    return {each.op.name for each in flat if tf.is_symbolic_tensor(each)}


def kept_for(graph: Any, start: int, given: set[str], wanted: set[str]) -> Kept:
    """Returns what is kept for the operations from a number on, which compute gradients, from given ones if there are any."""
    operations = graph.get_operations()
    backward = backward_pass(needed(operations[start:], wanted), given)
    order = {operation.name: i for i, operation in enumerate(operations)}
    captured = {tensor.name for tensor in getattr(graph, "internal_captures", ())}
    shapes = Shapes(graph, len(operations))
    tensors: dict[Any, tuple[int, Sizes]] = {}
    unknown = set()
    for tensor, inner in map(origin_of, read_by(backward)):
        if is_not_computed(inner) or tensor.name in captured:
            continue
        number = min(order[tensor.op.name], start - 1)
        if is_handle(tensor):
            key, sizes = shapes.listed(tensor)
        else:
            key, sizes = (tensor.op.name, inner.name), shapes.sizes(tensor)
        if sizes is None:
            unknown.add(tensor.name)
        else:
            tensors[key] = number, sizes
    return Kept(start, tensors, frozenset(unknown))


def needed(added: list[Any], wanted: set[str]) -> list[Any]:
    """Returns the operations on which the wanted ones depend: TensorFlow executes no others."""
    names, found = set(wanted), []
    for operation in reversed(added):
        if operation.name in names:
            names.update(each.name for each in before(operation))
            found.append(operation)
    return found[::-1]


def before(operation: Any) -> list[Any]:
    """Returns the operations for which an operation waits."""
    return [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]


def backward_pass(added: list[Any], given: set[str]) -> list[Any]:
    """Returns the operations that depend on the gradients of the losses, which are ones or were given, or wait for them."""
    depend = {*given, *(each.name for each in added if ONES.search(each.name))}
    found = []
    for operation in added:
        if any(each.name in depend for each in before(operation)):
            depend.add(operation.name)
            found.append(operation)
    return found


def read_by(operations: list[Any]) -> Iterator[Any]:
    """Returns what operations read of others, each buffer once."""
    seen = {operation.name for operation in operations}
    for operation in operations:
        for tensor in map(buffer_of, operation.inputs):
            if tensor.name not in seen and tensor.op.name not in seen:
                seen.add(tensor.name)
                yield tensor


def buffer_of(tensor: Any) -> Any:
    """Returns the tensor whose buffer this one is."""
    while tensor.op.type in ALIASES or leaves_order(tensor.op):
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def leaves_order(operation: Any) -> bool:
    """Tells whether an operation transposes a tensor in a way that leaves its numbers in their order, and does not copy it."""
    if operation.type != "Transpose":
        return False
    places, sizes = constant(operation.inputs[1]), operation.inputs[0].shape
    if places is None or sizes.rank is None:
        return False
    moved = [place for place in places if sizes[place] != 1]
    return moved == sorted(moved)


def constant(tensor: Any) -> Any:
    """Returns the value of a tensor if the graph decides it."""
    value = tf_internals.tensor_util.constant_value(tensor)
    return tf_internals.tensor_util.try_evaluate_constant(tensor) if value is None else value


def origin_of(tensor: Any) -> tuple[Any, Any]:
    """Returns the tensor whose buffer this one is, also through loops and functions; and that tensor within its function."""
    while True:
        tensor = buffer_of(tensor)
        operation, place = tensor.op, tensor.value_index
        if operation.type in LOOPS and passes_on(body_of(operation), place):
            tensor = operation.inputs[place]
        elif operation.type in CALLS:
            function = function_of(operation, "f")
            inner, _ = origin_of(function.outputs[place])
            argument = place_of(function, inner)
            if argument is None:
                return tensor, inner
            tensor = operation.inputs[argument]
        else:
            return tensor, tensor


def function_of(operation: Any, attribute: str) -> Any:
    """Returns the graph of a function that an operation calls."""
    name = operation.get_attr(attribute).name
    return tf_internals.read(operation.graph, "_get_function")(name).graph


def body_of(loop: Any) -> Any:
    return function_of(loop, "body")


def is_not_computed(tensor: Any) -> bool:
    return tensor.op.type in NOT_COMPUTED or tensor.dtype.name == "resource"


def is_handle(tensor: Any) -> bool:
    return bool(tensor.dtype.name == "variant")


def added(sizes: Any) -> Sizes:
    few, many = 0, 0
    for one, other in sizes:
        few, many = few + one, many + other
    return few, many


class Shapes:
    """The sizes of a graph's tensors. Where only the number of examples is unknown, the shapes are inferred again with one."""

    def __init__(self, graph: Any, operations: int) -> None:
        self.graph, self.operations = graph, operations
        self.within = functools.cache(lambda graph: Shapes(graph, len(graph.get_operations())))

    @functools.cached_property
    def copies(self) -> list[Any]:
        if self.operations <= MOST_OPERATIONS:
            with contextlib.suppress(ValueError):  # of a graph that cannot be copied
                return [with_examples(self.graph, examples) for examples in PROBES]
        return [self.graph for _ in PROBES]

    def sizes(self, tensor: Any) -> Sizes | None:
        if tensor.shape.is_fully_defined():
            return both([bytes_of(tensor.shape, tensor.dtype, examples) for examples in PROBES])
        found = []
        for copy, examples in zip(self.copies, PROBES):
            inferred = copy.get_tensor_by_name(tensor.name).shape
            shape = inferred if inferred.is_fully_defined() else tensor.shape
            found.append(bytes_of(shape, tensor.dtype, examples))
        return both(found)

    def listed(self, tensor: Any) -> tuple[Any, Sizes | None]:
        """Returns the bytes of the tensors in a list that a loop has made or read, and a name for them."""
        if tensor.op.type == "TensorListFromTensor":
            whole = buffer_of(tensor.op.inputs[0])
            return whole.name, self.sizes(whole)
        loop, place = tensor.op, tensor.value_index
        if loop.type in CALLS:
            graph = function_of(loop, "f")
            key, sizes = self.within(graph).listed(buffer_of(graph.outputs[place]))
            return (loop.name, key), sizes
        if loop.type not in LOOPS:
            return tensor.name, None
        body = body_of(loop)
        if passes_on(body, place):
            return self.listed(buffer_of(loop.inputs[place]))
        pushed = element_of(body, place)
        if pushed is None:
            return tensor.name, None
        if pushed.op.type in NOT_COMPUTED:
            return tensor.name, (0, 0)
        if pushed.op.type == "TensorListGetItem":  # which does not copy
            source = place_of(body, pushed.op.inputs[0])
            if source is not None and passes_on(body, source):
                return self.listed(buffer_of(loop.inputs[source]))
        times = self.most_times(loop, place)
        one = both([bytes_of(pushed.shape, pushed.dtype, examples) for examples in PROBES])
        if times is None or one is None:
            return tensor.name, None
        return (loop.name, pushed.name), (one[0] * times, one[1] * times)

    def most_times(self, loop: Any, place: int) -> int | None:
        """Returns how often a loop runs, if the lengths of its lists say it: of the one at a place, or else of the longest."""
        given = [length_of(buffer_of(tensor).op) for tensor in (loop.inputs[place], *loop.inputs)]
        known = [length for length in given if length is not None]
        return given[0] if given[0] is not None else max(known, default=None)


def length_of(made: Any) -> int | None:
    """Returns the length of a list, if the operation that made it says one."""
    if made.type == "TensorListFromTensor":
        length: int | None = made.inputs[0].shape[0]
        return length
    if made.type in ("EmptyTensorList", "TensorListReserve"):
        reserved = constant(made.inputs[1])
        return int(reserved) if reserved is not None and reserved >= 0 else None
    return None


def element_of(body: Any, place: int) -> Any:
    """Returns the tensor that the body of a loop puts into its list at a place; of the loop's state, what made it."""
    made = buffer_of(body.outputs[place]).op
    if made.type not in ("TensorListPushBack", "TensorListSetItem"):
        return None
    tensor = buffer_of(made.inputs[1] if made.type == "TensorListPushBack" else made.inputs[2])
    state = place_of(body, tensor)
    if state is None or passes_on(body, state):
        return tensor
    before = buffer_of(body.outputs[state])  # what an earlier round has put out
    return tensor if before.shape.rank is None else before


def place_of(body: Any, tensor: Any) -> int | None:
    names = [each.name for each in body.inputs]
    name = buffer_of(tensor).name
    return names.index(name) if name in names else None


def passes_on(body: Any, place: int) -> bool:
    """Tells whether a loop leaves one of its values as it is."""
    return place_of(body, body.outputs[place]) == place


def both(found: list[int | None]) -> Sizes | None:
    few, many = found
    return None if few is None or many is None else (few, many)


def bytes_of(shape: Any, kind: Any, examples: int) -> int | None:
    """Returns the bytes of a tensor; the first dimension is the examples if it is not known."""
    if shape.rank is None or kind.name in ("string", "variant"):
        return None
    sizes = shape.as_list()
    if sizes and sizes[0] is None:
        sizes[0] = examples
    return None if None in sizes else int(math.prod(sizes) * kind.size)


def with_examples(graph: Any, examples: int) -> Any:
    """Returns a copy of a graph whose inputs have this number of examples, and all other shapes as they follow from it."""
    import tensorflow as tf

    definition = graph.as_graph_def()
    for node in definition.node:
        if (
            node.op == "ReadVariableOp"
        ):  # the copy has no variables, so that it would not know their shapes
            shape = graph.get_tensor_by_name(f"{node.name}:0").shape.as_proto()
            kind = node.attr["dtype"].type
            node.op = "Placeholder"
            del node.input[:]
            node.attr.clear()
            node.attr["dtype"].type = kind
            node.attr["shape"].shape.CopyFrom(shape)
        shapes = [node.attr["shape"].shape] if node.op == "Placeholder" else []
        if "output_shapes" in node.attr:
            shapes.extend(node.attr["output_shapes"].list.shape)
        for each in shapes:
            if each.dim and each.dim[0].size == -1:
                each.dim[0].size = examples
        node.attr.pop("_output_shapes", None)
        node.attr.pop("_class", None)  # in a loop, it may name operations outside of it
    copy = tf.Graph()
    with copy.as_default():
        tf.graph_util.import_graph_def(definition, name="")
    return copy
