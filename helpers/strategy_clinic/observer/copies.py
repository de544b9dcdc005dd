"""Observes weights that are copied from one model or layer to another, and copies that are used when they are outdated."""

from __future__ import annotations

import copy as copy_module
import weakref
from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import (
    CopiedToItself,
    CopyCalled,
    ModelUsed,
    OutdatedCopyUsed,
    Sample,
    Stack,
    WeightsCopied,
)
from .identity_map import IdentityMap
from .patching import Call
from .training import outside_replicas
from .variables import Variables

MOST_COPIES = 3  # of one pair that are reported
MOST_CALLS = 100  # of one copy whose lines are looked at
MOST_USES = 20  # of one model whose lines are looked at, after something was trained


@dataclass
class Copy:
    """The last copy that an object got."""

    source: weakref.ref[Any]
    location: Stack
    function: str
    values: dict[int, Sample]  # if they are those of the source
    target: tuple[int, ...] = ()  # its variables
    times: int = 1
    used: Stack = ()  # where it was last used after its source was trained
    in_training: bool = False  # it is called while something else is trained, as a teacher


class Copies:
    def __init__(self, context: Context, variables: Variables, made_at: IdentityMap[Stack]) -> None:
        self.context, self.variables = context, variables
        self.made_at = made_at  # of each model
        self.taken: tuple[int, weakref.ref[Any], weakref.ref[Any]] | None = (
            None  # the place of an array among the weights, the array, and their owner
        )
        self.config: tuple[Any, weakref.ref[Any]] | None = None  # the last one, and its model
        self.copies: IdentityMap[Copy] = IdentityMap()
        self.trained: IdentityMap[bool] = (
            IdentityMap()
        )  # and, since then, not used: models after `fit`
        self.fitting = 0
        self.layers: tuple[type, ...] = ()  # Keras's class, of each Keras that is imported

    def watch_keras(self, package: str, keras: Any) -> None:
        wrap = self.context.patches.wrap
        for kind in (keras.layers.Layer, keras.Model):
            for name, after in (
                ("get_weights", self.weights_taken),
                ("set_weights", self.weights_set),
            ):
                if name in vars(kind):
                    wrap(kind, name, after=after)
        wrap(keras.Model, "fit", before=self.fit_begins, after=self.fitted, group="copies")
        for name in ("predict", "save"):
            wrap(keras.Model, name, after=self.used, group="copies")
        wrap(keras.Model, "evaluate", after=self.evaluated, group="copies")
        wrap(keras.Model, "__call__", after=self.called, here=True)
        self.context.patches.wrap_everywhere(
            package, keras.models.clone_model, self.cloned, group="clone"
        )
        self.layers += (keras.layers.Layer,)
        is_keras_3 = package == "keras"
        module = tf_internals.functional if is_keras_3 else tf_internals.functional_of_keras_2
        for kind in (module.Functional, keras.Sequential):
            wrap(kind, "get_config", after=self.config_taken)
        for kind in (keras.Model, keras.Sequential):
            wrap(kind, "from_config", after=self.made_from_config, group="clone")

    def watch(self) -> None:
        self.context.patches.wrap(
            copy_module,
            "deepcopy",
            after=self.deepcopied,
            unless=lambda value: not isinstance(value, self.layers),
        )

    # Copying

    def weights_taken(self, weights: Any, call: Call) -> None:
        import numpy as np

        arrays = [i for i, each in enumerate(weights) if isinstance(each, np.ndarray)]
        if arrays:  # a single number may be no array
            place = arrays[0]
            self.taken = place, weakref.ref(weights[place]), weakref.ref(call.owner)

    def weights_set(self, _: Any, call: Call) -> None:
        weights = call["weights"]
        if self.taken is None:
            return
        place, array, owner = self.taken
        if len(weights) > place and weights[place] is array():
            source = owner()
            if source is call.owner:
                self.copied_to_itself()
            elif source is not None:
                self.copied("set_weights", source, call.owner)

    def copied_to_itself(self) -> None:
        stack = self.context.provenance.stack()
        if stack and self.context.is_first("copied to itself", stack):
            self.context.emit(CopiedToItself(stack))

    def cloned(self, clone: Any, call: Call) -> None:
        self.copied("clone_model", call["model"], clone)

    def config_taken(self, config: Any, call: Call) -> None:
        self.config = config, weakref.ref(call.owner)

    def made_from_config(self, model: Any, call: Call) -> None:
        """Reports a model that is made from what the `get_config` of another has just returned."""
        config, source = self.config or (None, lambda: None)
        if config is call["config"] and isinstance(source(), self.layers):
            self.copied("from_config", source(), model)

    def deepcopied(self, result: Any, call: Call) -> None:
        if isinstance(call["x"], self.layers):
            self.copied("deepcopy", call["x"], result)

    def copied(self, function: str, source: Any, target: Any) -> None:
        numbers = [self.variables.numbers_of(weights_of(each)) for each in (source, target)]
        known, stack = self.copies.get(target), self.context.provenance.stack()
        if (
            known and known.function == function
        ):  # it is kept up to date: its values are of no matter
            known.times += 1
            equal = False
        else:
            before, after = (
                self.variables.trained_values(source),
                self.variables.trained_values(target),
            )
            equal = bool(before) and list(before.values()) == list(after.values())
            values = after if equal else {}
            self.copies[target] = Copy(weakref.ref(source), stack, function, values, numbers[1])
        if self.context.count("copied", self.context.serial(target)) <= MOST_COPIES:
            self.context.emit(WeightsCopied(stack, function, numbers[0], numbers[1], equal))

    # Use

    def fit_begins(self, call: Call) -> None:
        self.fitting += 1

    def fitted(self, _: Any, call: Call) -> None:
        self.fitting -= 1
        self.trained[call.owner] = True

    def called(self, _: Any, call: Call) -> None:
        copy = self.copies.get(call.owner)
        if copy is not None:
            copy.in_training |= bool(self.fitting)
            self.report_call(copy)
        if not self.fitting:
            self.source_used(None, call)
            if outside_replicas():
                self.report_use(call.owner)

    def report_use(self, model: Any) -> None:
        serial = self.context.serial(model)
        if not self.variables.something_trained or self.context.count("used", serial) > MOST_USES:
            return
        stack = self.context.provenance.stack()
        if stack and self.context.is_first("used", serial, stack):
            numbers = self.variables.numbers_of
            made_at = self.made_at.get(model) or ()
            self.context.emit(
                ModelUsed(stack, numbers(model.variables), numbers(weights_of(model)), made_at)
            )

    def report_call(self, copy: Copy) -> None:
        if self.context.count("copy called", copy.target) <= MOST_CALLS:
            stack = self.context.provenance.stack()
            if stack and self.context.is_first("copy called", copy.target, stack):
                self.context.emit(CopyCalled(stack, copy.target))

    def source_used(self, _: Any, call: Call) -> None:
        if self.trained.get(call.owner):
            self.trained[call.owner] = False

    def evaluated(self, _: Any, call: Call) -> None:
        self.source_used(None, call)
        if not self.fitting:
            self.report_use(call.owner)

    def used(self, _: Any, call: Call) -> None:
        self.evaluated(None, call)
        copy = self.copies.get(call.owner)
        is_old = copy is not None and copy.values and self.trained.get(copy.source())
        if copy is not None and is_old and self.variables.trained_values(call.owner) == copy.values:
            copy.used = self.context.provenance.stack()

    def report_outdated(self) -> None:
        """Reports at the end the copies that were used instead of what they were copied from."""
        for _, copy in self.copies.items():
            is_unused = self.trained.get(copy.source())
            if copy.used and is_unused and copy.times == 1 and not copy.in_training:
                event = OutdatedCopyUsed(
                    copy.used, copy.function, copy.location, tuple(copy.values)
                )
                self.context.emit(event)


def weights_of(thing: Any) -> Any:
    """Returns what is trained of a layer or a model; all of its weights if the program has frozen them."""
    return thing.trainable_variables or thing.weights
