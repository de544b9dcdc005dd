"""Observes models that get their weights from a file and are not used afterwards, while another like them is."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import LoadUnused, Sample, Stack
from .frozen_values import FrozenValues
from .identity_map import IdentityMap
from .patching import Call
from .variables import Variables, sample_of

USES = (
    "fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch",
    "save", "save_weights", "export",
)  # fmt: skip
MOST_LOADS = 20
Shapes = tuple[tuple[int, ...], ...]


@dataclass
class ModelLoad:
    model: weakref.ref[Any]
    path: str
    location: Stack
    time: int
    others: list[weakref.ref[Any]]  # models of the same shapes that had other values then


class UnusedLoads:
    def __init__(self, context: Context, variables: Variables, functions: FrozenValues) -> None:
        self.context, self.variables, self.functions = context, variables, functions
        self.used_at: IdentityMap[int] = IdentityMap()  # by model, when it was last used
        self.loads: list[ModelLoad] = []

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        for name in ("restore", "read"):
            wrap(tf.train.Checkpoint, name, after=self.restored, group="use of restored")
        wrap(tf.train.Checkpoint, "write", after=self.checkpoint_saved)

    def watch_keras(self, package: str, keras: Any) -> None:
        patches, model = self.context.patches, keras.Model
        for name in USES:
            if hasattr(model, name):
                patches.wrap(model, name, after=self.used)
        patches.wrap(model, "__call__", after=self.used, here=True)
        patches.wrap(model, "load_weights", after=self.weights_loaded)
        patches.wrap_everywhere(package, keras.models.load_model, self.model_loaded)

    def now(self) -> int:
        return self.context.count("use")

    def used(self, _: Any, call: Call) -> None:
        self.used_at[call.owner] = self.now()

    def checkpoint_saved(self, _: Any, call: Call) -> None:
        for model in models_in(call.owner):
            self.used_at[model] = self.now()

    def weights_loaded(self, _: Any, call: Call) -> None:
        self.loaded([call.owner], call["filepath"])

    def model_loaded(self, model: Any, call: Call) -> None:
        self.loaded([model], call["filepath"])

    def restored(self, _: Any, call: Call) -> None:
        if call["save_path"] is not None:
            self.loaded(models_in(call.owner), call["save_path"])

    def loaded(self, models: Iterable[Any], path: Any) -> None:
        for model in models:
            if len(self.loads) < MOST_LOADS:
                mine = self.values_of(model)
                others = [
                    weakref.ref(other)
                    for other, _ in self.used_at.items()
                    if other is not model and shapes_of(other) == shapes_of(model)
                    if self.values_of(other) != mine
                ]
                stack = self.context.provenance.stack()
                made = ModelLoad(weakref.ref(model), str(path), stack, self.now(), others)
                self.loads.append(made)

    def values_of(self, model: Any) -> list[Sample]:
        records = map(self.variables.record_of, model.weights)
        return [sample_of(record) for record in records if record]

    # The end

    def report_unused(self) -> None:
        loaded = {id(load.model()) for load in self.loads}
        for load in self.loads:
            model = load.model()
            if model is None or self.is_used(model, load.time):
                continue
            others = [other for other in (each() for each in load.others) if other is not None]
            instead = [
                other
                for other in others
                if (self.used_at.get(other) or 0) > load.time and id(other) not in loaded
            ]
            if instead:
                self.context.emit(LoadUnused(load.location, load.path, model.name, instead[0].name))

    def is_used(self, model: Any, time: int) -> bool:
        """Tells whether a model, or one of its variables, was used after a time: read, or called in a graph."""
        numbers = {*self.variables.numbers_of(model.weights)}
        read = any(record.read_since_load for record in self.variables.numbered(numbers))
        return read or (self.used_at.get(model) or 0) > time or bool(numbers & self.called(time))

    def called(self, time: int) -> set[int]:
        """Returns the variables of the graphs that were called after a time."""
        numbers: set[int] = set()
        for function in self.functions.called_after(time):
            for graph in tf_internals.read(function, "_list_all_concrete_functions")():
                numbers |= {*self.variables.numbers_of(graph.graph.variables)}
        return numbers


def models_in(root: Any) -> Iterator[Any]:
    """Returns the models of Keras that a checkpoint leads to, the outermost of them."""
    import tensorflow as tf

    for thing in tf.train.TrackableView(root).children(root).values():
        if hasattr(thing, "load_weights") and hasattr(thing, "predict"):
            yield thing


def shapes_of(model: Any) -> Shapes:
    return tuple(tuple(weight.shape) for weight in model.weights)
