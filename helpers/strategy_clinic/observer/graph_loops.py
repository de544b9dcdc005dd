"""Observes loops of a graph in which the program trains: several steps are made before the weights can be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import TrainedInLoop
from .patching import Call
from .replacements import Replacement

UNLIMITED = 2**31 - 1  # int32, as TensorFlow has it


@dataclass(frozen=True)
class Loop:
    updates: int  # that were traced before
    follows_step: bool  # in the same graph
    most: Any = None  # a tensor: how often the loop is repeated at most


class GraphLoops:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.one_step = Replacement.ONE_STEP.value in context.settings.replace

    def watch(self) -> None:
        self.context.patches.wrap(
            tf_internals.while_v2, "while_loop", before=self.loop_begins, after=self.loop_traced
        )

    def loop_begins(self, call: Call) -> None:
        import tensorflow as tf

        if takes_elements(call["loop_vars"]):
            return  # up to the end of a dataset, where its iterator is deleted: earlier, that can take a minute
        most = None
        if self.one_step:
            most = own_tensor(call["maximum_iterations"])
            call.replace("maximum_iterations", most)
        follows_step = bool(self.context.trained_graphs.get(tf.compat.v1.get_default_graph()))
        call.state = Loop(self.updates(), follows_step, most)

    def loop_traced(self, _: Any, call: Call) -> None:
        """Reports a loop that trains, and limits its graph to one step; whether it trains is known only now."""
        loop: Loop | None = call.state
        if loop is None or self.updates() == loop.updates:
            return
        if loop.most is not None:
            limit(loop.most, 0 if loop.follows_step else 1)
        stack = self.context.provenance.stack()
        if self.context.is_first("loop", stack):
            self.context.emit(TrainedInLoop(stack))

    def updates(self) -> int:
        return self.context.counts[("applied",)]


def takes_elements(values: Any) -> bool:
    """Tells whether a loop passes on elements of a dataset that may be missing."""
    import tensorflow as tf

    return any(hasattr(each, "has_value") for each in tf.nest.flatten(values))


def own_tensor(most: Any) -> Any:
    """Returns a tensor that nothing else in the graph uses."""
    import tensorflow as tf

    return tf.identity(tf.cast(UNLIMITED if most is None else most, tf.int32))


def limit(most: Any, times: int) -> None:
    """Repeats the loop that takes this tensor so many times."""
    import tensorflow as tf

    for operation in most.consumers():
        for position, taken in enumerate(operation.inputs):
            if taken is most:
                tf_internals.read(operation, "_update_input")(position, tf.constant(times))
