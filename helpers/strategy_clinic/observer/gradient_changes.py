"""Observes whether a program changes the gradients of a replica by more than a factor before it gives them to an optimizer.

A replica that divides its gradients by their norm, for example, does so before the optimizer adds up the gradients of all
replicas. Only graphs can be looked at: the operations that lead from the computed gradients to those that are applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .context import Context
from .patching import Call
from .variables import replica_now, replicas_now, variable_in

MOST_TENSORS = 2000  # that lead to the gradients of one update
# Operations that do something else to a sum than to its parts; a mask of finite numbers is none of them.
BENDS = {"Sqrt", "Rsqrt", "Square", "L2Loss", "Abs", "Sign", "Tanh", "Pow", "Exp", "Log", "Sigmoid"}
BENDS |= {"Minimum", "Maximum", "ClipByValue", "Min", "Max", "EuclideanNorm", "SquaredDifference"}
BENDS |= {"Reciprocal", "Inv"}
# And those that do so if more than one of their inputs comes from gradients.
PRODUCTS = {"Mul", "RealDiv", "Div", "DivNoNan", "MatMul", "BatchMatMulV2", "Einsum"}
OVER_REPLICAS = "Collective", "Nccl"  # how operations begin that add up what all replicas have


class GradientChanges:
    def __init__(self, context: Context) -> None:
        self.context = context
        # By graph and name of a computed gradient, the replica that has computed it.
        self.replicas: dict[tuple[int, str], int] = {}
        # By graph, replica and variable, the name of the gradient that was computed last.
        self.computed: dict[tuple[int, int, int], str] = {}

    def watch(self) -> None:
        import tensorflow as tf

        self.context.patches.wrap(tf.GradientTape, "gradient", after=self.differentiated)

    def differentiated(self, result: Any, call: Call) -> None:
        import tensorflow as tf

        if tf.executing_eagerly() or replicas_now() == 0:
            return
        sources, replica = tf.nest.flatten(call["sources"]), replica_now() or 0
        for source, gradient in zip(sources, tf.nest.flatten(result)):
            tensor = dense_part(gradient)
            if tensor is not None:
                graph = self.context.serial(tensor.graph)
                self.replicas[graph, tensor.name] = replica
                serial = self.context.serial(variable_in(source))
                self.computed[graph, replica, serial] = tensor.name

    def are_changed(self, gradients: Sequence[Any]) -> bool:
        """Tells whether these gradients depend otherwise than by sums and factors on those that one replica has computed."""
        import tensorflow as tf

        if tf.executing_eagerly() or replicas_now() == 0:
            return False
        given = [each for each in map(dense_part, gradients) if each is not None]
        tensors = self.leading_to(given)
        sources = self.sources_of(tensors)
        for tensor in tensors:
            parts = [sources.get(each.name, frozenset()) for each in self.inputs_of(tensor)]
            replicas = frozenset().union(*parts)
            is_product = tensor.op.type in PRODUCTS and sum(map(bool, parts)) > 1
            if len(replicas) == 1 and (tensor.op.type in BENDS or is_product):
                return True
        return False

    def inputs_of(self, tensor: Any) -> list[Any]:
        """Returns what a tensor is computed from in its replica; nothing for a computed gradient and a sum over replicas."""
        if self.replica_of(tensor) is not None or tensor.op.type.startswith(OVER_REPLICAS):
            return []
        inputs = list(tensor.op.inputs)
        return [inputs[tensor.value_index]] if tensor.op.type == "IdentityN" else inputs

    def leading_to(self, tensors: Iterable[Any]) -> list[Any]:
        """Returns these tensors and those from which they are computed; none if there are very many."""
        found: dict[str, Any] = {}
        waiting = list(tensors)
        while waiting and len(found) <= MOST_TENSORS:
            tensor = waiting.pop()
            if tensor.name not in found:
                found[tensor.name] = tensor
                waiting += self.inputs_of(tensor)
        return [] if waiting else list(found.values())

    def sources_of(self, tensors: Sequence[Any]) -> dict[str, frozenset[int]]:
        """Returns by name of a tensor the replicas with whose computed gradients it is computed."""
        found: dict[str, frozenset[int]] = {}
        followers: dict[str, list[str]] = {}
        for tensor in tensors:
            for each in self.inputs_of(tensor):
                followers.setdefault(each.name, []).append(tensor.name)
            replica = self.replica_of(tensor)
            if replica is not None:
                found[tensor.name] = frozenset([replica])
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            for follower in followers.get(name, ()):
                before = found.get(follower, frozenset())
                if not found[name] <= before:
                    found[follower] = before | found[name]
                    waiting.append(follower)
        return found

    def replica_of(self, tensor: Any) -> int | None:
        return self.replicas.get((self.context.serial(tensor.graph), tensor.name))

    def as_computed(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Returns for each gradient the one that the replica has computed for the same variable last."""
        return [self.computed_for(*pair) for pair in zip(gradients, variables)]

    def computed_for(self, gradient: Any, variable: Any) -> Any:
        tensor = dense_part(gradient)
        if tensor is None or tensor is not gradient:
            return gradient
        graph = self.context.serial(tensor.graph)
        serial = self.context.serial(variable_in(variable))
        name = self.computed.get((graph, replica_now() or 0, serial))
        return tensor.graph.get_tensor_by_name(name) if name else gradient


def dense_part(gradient: Any) -> Any:
    """Returns a gradient as a tensor: of some rows their values; None if there is none."""
    tensor = getattr(gradient, "values", gradient)
    return tensor if hasattr(tensor, "op") else None
