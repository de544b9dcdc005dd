"""Observes models that get their weights from a file and are not used afterwards, while another like them is."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import LoadUnused, Stack
from .frozen_values import FrozenValues
from .identity_map import IdentityMap
from .patching import Call
from .variables import Record, Variables, sample_of, weights_of

USES = (
    "fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch",
    "save", "save_weights", "export", "summary",
)  # fmt: skip
MOST_LOADS = 20
Shapes = tuple[tuple[int, ...], ...]


@dataclass
class ModelLoad:
    """A load; the model may be gone before the end, and its variables may then be those of another."""

    model: weakref.ref[Any]
    name: str
    records: list[Record]
    path: str
    location: Stack
    time: int
    others: list[weakref.ref[Any]]  # models of the same shapes that had other values then
    used: bool = False


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
        self.note_use(call.owner)

    def note_use(self, model: Any) -> None:
        self.used_at[model] = self.now()
        for load in self.loads:
            load.used |= load.model() is model

    def checkpoint_saved(self, _: Any, call: Call) -> None:
        for model in models_in(call.owner):
            self.note_use(model)

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
                records = self.records_of(model)
                mine = list(map(sample_of, records))
                others = [
                    weakref.ref(other)
                    for other, _ in self.used_at.items()
                    if other is not model and shapes_of(other) == shapes_of(model)
                    if [*map(sample_of, self.records_of(other))] != mine
                ]
                stack, now = self.context.provenance.stack(), self.now()
                made = ModelLoad(
                    weakref.ref(model), model.name, records, str(path), stack, now, others
                )
                self.loads.append(made)

    def records_of(self, model: Any) -> list[Record]:
        return list(filter(None, map(self.variables.record_of, weights_of(model))))

    # The end

    def report_unused(self) -> None:
        loaded = {id(load.model()) for load in self.loads}
        for load in self.loads:
            others = [other for other in (each() for each in load.others) if other is not None]
            instead = [
                other
                for other in others
                if (self.used_at.get(other) or 0) > load.time and id(other) not in loaded
            ]
            if instead and not self.is_used(load):
                self.context.emit(LoadUnused(load.location, load.path, load.name, instead[0].name))

    def is_used(self, load: ModelLoad) -> bool:
        """Tells whether a loaded model, or one of its variables, was used: read, or called in a graph."""
        numbers = {record.number for record in load.records}
        read = any(record.read_since_load for record in load.records)
        return load.used or read or bool(numbers & self.called(load.time))

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
    return tuple(tuple(weight.shape) for weight in weights_of(model))
