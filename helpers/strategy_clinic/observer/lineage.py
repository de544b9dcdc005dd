"""Observes what a traced loss is computed from: the operations that lead to it, each with the program's lines that made it.

Most operations of a model compute a value for each example from those of the same example: these are left out. What is kept
are those that make one value of all examples, those that stop gradients, and what they are joined with: other such values,
weights and constants. Where a loss divides by the wrong number, adds a penalty, or compares examples with each other, such
an operation does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .activations import constant
from .context import Context
from .eager_operations import EagerOperation, EagerOperations, EagerValue
from .events import Carries, LossTraced, Operation, Stack
from .patching import Call
from .stopped_gradients import STOPS
from .variables import captures_of, replica_now

MOST_LOSSES = 12  # of a program, at different lines
MOST_TENSORS = 20_000  # that lead to a loss
MOST_FOLDED = 12  # operations, to a constant
MOST_OPERATIONS = 400  # that are reported of a loss
PREDICATED = {"If", "StatelessIf", "Case", "StatelessCase"}  # whose first input chooses a branch
SIZES = {"Shape", "ShapeN", "Size", "Rank"}
READERS = {"IteratorGetNext", "IteratorGetNextAsOptional", "OptionalGetValue"}
DRAWING = "Random", "StatelessRandom", "TruncatedNormal", "ParameterizedTruncatedNormal"
# How operations begin that combine what all replicas have. On one machine that are others, which devices tell.
OVER_REPLICAS = "Collective", "Nccl"
# Operations whose value is that of their input, in another form.
SAME = {"Identity", "IdentityN", "Cast", "Reshape", "Squeeze", "ExpandDims", "EnsureShape"}
EVERYWHERE = frozenset({"this device", "another"})
FACTORS = {"Mul", "RealDiv", "Div", "DivNoNan"}


class Lineage:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.eager = EagerOperations(context)

    def watch(self) -> None:
        import tensorflow as tf

        self.eager.watch()

        self.context.patches.wrap(tf.GradientTape, "gradient", before=self.differentiated)

    def differentiated(self, call: Call) -> None:
        """Reports each loss once, as its first replica computes it."""
        import tensorflow as tf

        stack_of: Any
        provenance = self.context.provenance
        if replica_now():
            return
        site, _ = provenance.call_site()
        if self.context.counts["losses"] == MOST_LOSSES or not self.context.is_first("loss", site):
            return
        self.context.count("losses")
        targets, stack_of = tf.nest.flatten(call["target"]), provenance.stack_of
        is_eager = tf.executing_eagerly()
        if is_eager:
            targets, stack_of = self.eager.values(call.owner, targets), made_at
        targets = [each for each in targets if hasattr(each, "op")]
        operations = Walk(stack_of).operations(targets) if targets else ()
        # Outside of graphs nothing may tell examples from other values
        if operations and (not is_eager or operations[0].carries is Carries.TOTAL):
            self.context.emit(LossTraced(provenance.stack(), operations))


def made_at(operation: EagerOperation) -> Stack:
    return operation.location


class Walk:
    """The tensors that lead to a loss, and what each of them carries."""

    def __init__(self, stack_of: Any) -> None:
        self.stack_of = stack_of
        self.inputs: dict[Any, list[Any]] = {}
        self.carries: dict[Any, Carries] = {}
        self.devices: dict[Any, frozenset[str]] = {}

    def operations(self, targets: Sequence[Any]) -> tuple[Operation, ...]:
        order = self.in_order(targets)
        for tensor in order:
            self.look_at(tensor)
        return tuple(self.reported(targets)) if order else ()

    def in_order(self, targets: Sequence[Any]) -> list[Any]:
        """Returns the tensors that lead to these, each after those from which it is computed; none if they are too many."""
        order: list[Any] = []
        waiting = [(each, False) for each in targets]
        while waiting:
            tensor, is_done = waiting.pop()
            if is_done:
                order.append(tensor)
            elif key(tensor) not in self.inputs:
                self.inputs[key(tensor)] = inputs_of(tensor)
                waiting.append((tensor, True))
                waiting += [(each, False) for each in self.inputs[key(tensor)]]
            if len(self.inputs) > MOST_TENSORS:
                return []
        return order

    def look_at(self, tensor: Any) -> None:
        own = key(tensor)
        before = [key(each) for each in self.inputs[own]]
        found = {self.carries[each] for each in before if each in self.carries}
        self.carries[own] = carried_by(tensor, found)
        # What is computed of a replica's examples is its own, also with a number that all replicas share.
        examples = [each for each in before if self.carries.get(each) is Carries.EXAMPLES]
        known = [self.devices.get(each, frozenset()) for each in examples or before]
        devices = frozenset[str]().union(*known)
        if tensor.op.type.startswith(OVER_REPLICAS):
            devices |= EVERYWHERE
        elif self.carries[own] is not Carries.WEIGHTS and tensor.op.device:
            devices |= {tensor.op.device}
        self.devices[own] = devices

    # What is reported

    def reported(self, targets: Sequence[Any]) -> Iterable[Operation]:
        """Returns what is kept, the loss first. Several operations of one kind on one line, such as penalties, are one."""
        numbers: dict[Any, int] = {}
        inputs: dict[int, dict[int, None]] = {}
        told: list[Any] = []
        waiting: list[tuple[Any, int | None]] = [(each, None) for each in targets]
        for tensor, user in waiting:
            tensor = self.through(tensor)
            kept = self.identity(tensor)
            is_new = kept not in numbers
            if is_new and len(numbers) == MOST_OPERATIONS:
                continue
            number = numbers.setdefault(kept, len(numbers))
            if user is not None and user != number:
                inputs.setdefault(user, {})[number] = None
            if is_new:
                told.append(tensor)
                waiting += [(each, number) for each in self.followed(tensor)]
        for number, tensor in enumerate(told):
            yield self.told(number, tensor, tuple(inputs.get(number, ())))

    def through(self, tensor: Any) -> Any:
        """Returns the tensor that this one is in another form."""
        while tensor.op.type in SAME and self.inputs[key(tensor)]:
            (first, *_) = self.inputs[key(tensor)]
            if self.carries[key(first)] is not self.carries[key(tensor)]:
                break
            tensor = first
        return tensor

    def identity(self, tensor: Any) -> Any:
        if self.carries[key(tensor)] is Carries.WEIGHTS:
            return tensor.op.type, self.stack_of(tensor.op), value_of(tensor)
        return key(tensor)

    def followed(self, tensor: Any) -> Iterable[Any]:
        """Returns what of a tensor's inputs is reported: of one that has a value for each example, what these are joined with."""
        inputs = self.inputs[key(tensor)]
        if self.carries[key(tensor)] is not Carries.EXAMPLES:
            return [each for each in inputs if not is_axis(each)]
        return self.joined_in(tensor)

    def joined_in(self, tensor: Any) -> Iterable[Any]:
        """Returns the next operations on the way to the examples that join them with something, or that stop gradients."""
        seen, waiting = {key(tensor)}, [tensor]
        while waiting:
            current = waiting.pop()
            for each in self.inputs[key(current)]:
                if key(each) in seen:
                    continue
                seen.add(key(each))
                carried = self.carries[key(each)]
                is_factor = current is tensor and self.is_factor(tensor, each)
                is_told = self.joins(each) or each.op.type in STOPS
                is_joined = carried is Carries.EXAMPLES and is_told
                if carried is Carries.TOTAL or is_factor or is_joined:
                    yield each
                elif carried is Carries.EXAMPLES:
                    waiting.append(each)

    def joins(self, tensor: Any) -> bool:
        """Tells whether values of examples are joined here with one of all, with a number, or with those of other examples."""
        inputs = self.inputs[key(tensor)]
        examples = [each for each in inputs if self.carries[key(each)] is Carries.EXAMPLES]
        return (
            any(self.carries[key(each)] is Carries.TOTAL for each in inputs)
            or any(self.is_factor(tensor, each) for each in inputs)
            or (tensor.op.type == "MatMul" and len(examples) > 1)
        )

    def is_factor(self, tensor: Any, operand: Any) -> bool:
        is_number = self.carries[key(operand)] in (Carries.WEIGHTS, Carries.SIZE)
        return tensor.op.type in FACTORS and is_number and operand.shape.rank == 0

    def told(self, number: int, tensor: Any, inputs: tuple[int, ...]) -> Operation:
        own = key(tensor)
        is_whole = len(self.devices[own]) > 1
        return Operation(
            number,
            tensor.op.type,
            self.stack_of(tensor.op),
            inputs,
            self.carries[own],
            is_whole,
            value_of(tensor),
        )


def is_axis(tensor: Any) -> bool:
    """Tells whether this is a constant of integers other than one number, such as axes and shapes."""
    return tensor.op.type == "Const" and value_of(tensor) is None


def key(tensor: Any) -> Any:
    return id(tensor.graph), tensor.name


def inputs_of(tensor: Any) -> list[Any]:
    """Returns what a tensor is computed from, also in the graph around; what only chooses a branch is none of that."""
    import tensorflow as tf

    operation = tensor.op
    if operation.type == "Placeholder":
        outer = [each for each, inner in captures_of(tensor.graph) if inner is tensor]
        return [each for each in outer if hasattr(each, "op") and not is_eager(each)]
    inputs = list(operation.inputs)
    if operation.type == "IdentityN":
        inputs = [inputs[tensor.value_index]]
    if operation.type in PREDICATED:
        inputs = inputs[1:]
    return [each for each in inputs if each.dtype != tf.resource]


def is_eager(tensor: Any) -> bool:
    import tensorflow as tf

    return isinstance(tensor, tf.__internal__.EagerTensor)


def carried_by(tensor: Any, found: set[Carries]) -> Carries:
    """Returns what a tensor carries whose inputs carry this."""
    import tensorflow as tf

    if Carries.EXAMPLES in found:
        if tensor.op.type in SIZES:
            return Carries.SIZE
        # The lists of tensors of a loop have no shape of their own
        is_list = tensor.dtype == tf.variant
        is_one = tensor.shape.rank == 0 and not is_list or reduces_first_axis(tensor)
        return Carries.TOTAL if is_one else Carries.EXAMPLES
    for carried in (Carries.TOTAL, Carries.SIZE):
        if carried in found:
            return carried
    return Carries.EXAMPLES if not found and brings_examples(tensor) else Carries.WEIGHTS


def brings_examples(tensor: Any) -> bool:
    """Tells whether this is an argument of the step, a batch, or random numbers for one; a number is none.

    A batch that may be missing, since the data may have ended, has no shape of its own.
    """
    import tensorflow as tf

    kind = tensor.op.type
    is_argument = kind == "Placeholder" and not any(
        inner is tensor for _, inner in captures_of(tensor.graph)
    )
    drawn = kind.startswith(DRAWING)
    is_batch = kind in READERS
    may_be_missing = is_batch and tensor.dtype == tf.variant
    return may_be_missing or (is_argument or drawn or is_batch) and tensor.shape.rank != 0


def reduces_first_axis(tensor: Any) -> bool:
    """Tells whether an operation reduces its first input along the first axis."""
    operation = tensor.op
    if operation.type == "MatMul":
        return bool(operation.get_attr("transpose_a"))
    attributes = operation.node_def.attr
    if "keep_dims" not in attributes or len(operation.inputs) != 2:
        return False
    axes, rank = known(operation.inputs[1]), operation.inputs[0].shape.rank
    return axes is not None and bool({0, -(rank or 0) or 0} & {*axes.flatten().tolist()})


def value_of(tensor: Any) -> float | None:
    """Returns the value of a number that is a constant of the graph, or follows from constants, such as known shapes."""
    if tensor.shape.rank != 0 or not is_number(tensor):
        return None
    if tensor.op.type != "Const" and not follows_from_constants(tensor):
        return None
    value = known(tensor)
    return None if value is None else float(value)


def known(tensor: Any) -> Any:
    """Returns the value of a tensor that the graph decides; outside of graphs all are known."""
    return tensor.tensor.numpy() if isinstance(tensor, EagerValue) else constant(tensor)


def follows_from_constants(tensor: Any) -> bool:
    waiting, seen = [tensor], 0
    while waiting and seen < MOST_FOLDED:
        operation, seen = waiting.pop().op, seen + 1
        waiting += operation.inputs
        if not operation.inputs and operation.type != "Const":
            return False
    return not waiting


def is_number(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer)
