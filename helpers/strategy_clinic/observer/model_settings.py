"""Observes the settings with which models are saved and loaded: what the arguments of constructors have become."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import Frame, ModelSettings, Setting, Stack
from .patching import Call, defining_class, is_of_keras

MOST_MODELS = 20  # whose saves are reported, and whose loads
MOST_SETTINGS = 400
LONGEST_VALUE = 60
PLAIN = (bool, int, float, str, type(None))
# Arguments of all layers: Keras may give another name, and a type or a trainability is for the program to choose again.
OF_ALL_LAYERS = {"name", "dtype", "trainable", "batch_shape", "batch_input_shape", "autocast"}
Settings = tuple[Setting, ...]


@dataclass
class LoadedModel:
    model: weakref.ref[Any]
    path: str
    location: Stack
    settings: Settings
    before: int


class ModelsSettings:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.loads: list[LoadedModel] = []
        self.saves = 0

    def watch_keras(self, package: str, keras: Any) -> None:
        patches = self.context.patches
        patches.wrap(keras.Model, "save", after=self.saved)
        patches.wrap_everywhere(package, keras.models.load_model, self.loaded)

    def saved(self, _: Any, call: Call) -> None:
        settings = self.settings_of(call.owner)
        if settings and self.saves < MOST_MODELS:
            stack, path = self.context.provenance.stack(), str(call["filepath"])
            self.context.emit(ModelSettings(stack, path, False, settings, self.saves))
        self.saves += bool(settings)

    def loaded(self, model: Any, call: Call) -> None:
        if len(self.loads) < MOST_MODELS and (settings := self.settings_of(model)):
            stack, path = self.context.provenance.stack(), str(call["filepath"])
            load = LoadedModel(weakref.ref(model), path, stack, settings, self.saves)
            self.loads.append(load)

    def report(self) -> None:
        """Reports the loaded models as they are at the end: a program may set again what a file does not have."""
        for load in self.loads:
            model = load.model()
            settings = self.settings_of(model) if model is not None else load.settings
            self.context.emit(ModelSettings(load.location, load.path, True, settings, load.before))

    def settings_of(self, model: Any) -> Settings:
        """Returns the plain settings of the layers that classes of the program make, and of these themselves."""
        found: list[Setting] = []
        constructor: Frame | None = (
            None  # of the class of the program that came last: it holds what follows
        )
        for layer in tf_internals.read(model, "_flatten_layers")():
            is_own = not is_of_keras(type(layer))
            constructor = self.constructor_of(type(layer)) or constructor if is_own else constructor
            if constructor is not None:
                values = attributes_given(layer) if is_own else config_of(layer)
                found += [
                    Setting(type(layer).__name__, name, str(value)[:LONGEST_VALUE], constructor)
                    for name, value in plain_items(values)
                ]
        return tuple(found[:MOST_SETTINGS])

    def constructor_of(self, kind: type) -> Frame | None:
        code = getattr(vars(defining_class(kind, "__init__"))["__init__"], "__code__", None)
        if code is None or not self.context.provenance.is_own(code.co_filename):
            return None
        return Frame(code.co_filename, code.co_firstlineno, code.co_name)


def attributes_given(layer: Any) -> dict[str, Any]:
    """Returns the attributes of an object that have the names of its constructor's arguments."""
    names = inspect.signature(type(layer)).parameters
    held = vars(layer)
    return {name: held[kept] for name in names for kept in (name, f"_{name}") if kept in held}


def config_of(layer: Any) -> dict[str, Any]:
    try:
        return dict(layer.get_config())
    except Exception:  # of a layer that cannot be described
        return {}


def plain_items(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(values.items()):
        if name not in OF_ALL_LAYERS and isinstance(value, PLAIN):
            yield name, value
