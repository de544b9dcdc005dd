"""Observes what a program makes trainable, and what no later step trains of it.

Keras 3 ignores `trainable = True` of a model that is trainable already, and leaves the layers in it frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .context import Context
from .events import Stack, TrainableLeftOut
from .identity_map import IdentityMap
from .optimizers import Optimizers
from .variables import Variables, weights_of


@dataclass(frozen=True)
class Unfreezing:
    location: Stack
    steps: dict[int, int]  # of each optimizer that had been used, by its serial number


Unfreezings = dict[int, Unfreezing]  # by variable


class Unfrozen:
    def __init__(
        self,
        context: Context,
        variables: Variables,
        optimizers: Optimizers,
        models: IdentityMap[Stack],
    ) -> None:
        self.context, self.variables = context, variables
        self.optimizers, self.models = optimizers, models
        self.found: Unfreezings = {}  # what is trainable since then
        self.ignored: Unfreezings = {}  # what is still frozen

    def watch_keras(self, keras: Any) -> None:
        kind, patches = keras.layers.Layer, self.context.patches
        patches.wrap_assignment(kind, "trainable", self.set_begins, self.set_ends)

    def set_begins(self, layer: Any, value: Any) -> None:
        """Keeps where frozen weights become trainable, if some others have been trained before."""
        if value and self.optimizers.used:
            frozen = {*self.numbers_in(layer)} - {*self.trainable_in(layer)}
            if frozen:
                self.found.update(dict.fromkeys(frozen, self.unfreezing()))

    def set_ends(self, layer: Any, value: Any) -> None:
        """Keeps where layers stay frozen that are in one that was set to be trainable."""
        if self.ignored:
            for number in self.numbers_in(layer):
                self.ignored.pop(number, None)
        flatten = getattr(layer, "_flatten_layers", None)
        inside = flatten(include_self=False) if flatten and value else ()
        frozen = [number for e in inside if not e.trainable for number in self.numbers_in(e)]
        if frozen:
            self.ignored.update(dict.fromkeys(frozen, self.unfreezing()))

    def unfreezing(self) -> Unfreezing:
        steps = {serial: each.steps for serial, each in self.optimizers.used.items()}
        return Unfreezing(self.context.provenance.stack(), steps)

    def report(self) -> None:
        """Reports what got no gradient, in models of which something is trained later."""
        used = self.optimizers.used
        trained = {number for each in used.values() for number in each.trains}
        left, ignored = {}, {}
        for model, _ in self.models.items() if self.found or self.ignored else ():
            numbers, trainable = {*self.numbers_in(model)}, {*self.trainable_in(model)}
            left.update(self.left_of(self.found, numbers, trainable - trained))
            ignored.update(self.left_of(self.ignored, numbers, numbers - trainable))
        for location, found in by_location(ignored):
            self.context.emit(TrainableLeftOut(location, found, is_ignored=True))
        for location, found in by_location(left):
            self.context.emit(TrainableLeftOut(location, found, is_unfreezing=True))

    def left_of(
        self, unfreezings: Unfreezings, numbers: set[int], chosen: Iterable[int]
    ) -> Unfreezings:
        """Returns those of the chosen variables that have an unfreezing after which others of these numbers were trained."""
        return {
            number: unfreezings[number]
            for number in chosen
            if number in unfreezings and numbers & self.trained_since(unfreezings[number])
        }

    def trained_since(self, unfreezing: Unfreezing) -> set[int]:
        """Returns what optimizers train that have made steps since then."""
        return {
            number
            for serial, each in self.optimizers.used.items()
            if each.steps > unfreezing.steps.get(serial, 0)
            for number in each.trains
        }

    def numbers_in(self, layer: Any) -> tuple[int, ...]:
        return self.variables.numbers_of(weights_of(layer))

    def trainable_in(self, layer: Any) -> tuple[int, ...]:
        return self.variables.numbers_of(layer.trainable_variables)


def by_location(found: Mapping[int, Unfreezing]) -> list[tuple[Stack, tuple[int, ...]]]:
    numbers: dict[Stack, list[int]] = {}
    for number in sorted(found):
        numbers.setdefault(found[number].location, []).append(number)
    return [(location, tuple(each)) for location, each in numbers.items()]
