"""Observes the settings with which models are saved and loaded: what the arguments of constructors have become."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import Frame, ModelSettings, Setting
from .identity_map import IdentityMap
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
    event: ModelSettings  # as it was loaded
    compiled: list[Any]  # losses and metrics that the file gave it


class ModelsSettings:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.loads: list[LoadedModel] = []
        self.saves = 0
        self.compiled: IdentityMap[list[Any]] = IdentityMap()  # losses and metrics of the program

    def watch_keras(self, package: str, keras: Any) -> None:
        patches = self.context.patches
        patches.wrap(keras.Model, "compile", after=self.model_compiled)
        patches.wrap(keras.Model, "save", after=self.saved)
        patches.wrap_everywhere(package, keras.models.load_model, self.loaded)

    def model_compiled(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        given = tf.nest.flatten([call[name] for name in ("loss", "metrics", "weighted_metrics")])
        self.compiled[call.owner] = [each for each in given if self.constructor_of(type(each))]

    def saved(self, _: Any, call: Call) -> None:
        event = self.settings_of(call.owner, call, loaded=False)
        if has_settings(event) and self.saves < MOST_MODELS:
            self.context.emit(event)
        self.saves += has_settings(event)

    def loaded(self, model: Any, call: Call) -> None:
        event = self.settings_of(model, call, loaded=True)
        if has_settings(event) and len(self.loads) < MOST_MODELS:
            compiled = self.compiled.get(model) or []
            self.loads.append(LoadedModel(weakref.ref(model), event, compiled))

    def report(self) -> None:
        """Reports the loaded models as they are at the end: a program may set again what a file does not have."""
        for load in self.loads:
            model, event = load.model(), load.event
            if model is not None:
                # What the program has compiled anew is its own choice.
                is_as_loaded = self.compiled.get(model) is load.compiled
                compiled = self.settings_in(load.compiled) if is_as_loaded else ()
                event = replace(event, settings=self.settings_of_layers(model), compiled=compiled)
            self.context.emit(event)

    def settings_of(self, model: Any, call: Call, *, loaded: bool) -> ModelSettings:
        settings = self.settings_of_layers(model)
        compiled = self.settings_in(self.compiled.get(model) or ())
        stack, path = self.context.provenance.stack(), str(call["filepath"])
        return ModelSettings(stack, path, loaded, settings, self.saves, compiled)

    def settings_of_layers(self, model: Any) -> Settings:
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
                found += plain_settings(layer, values, constructor)
        return tuple(found[:MOST_SETTINGS])

    def settings_in(self, compiled: Sequence[Any]) -> Settings:
        """Returns the plain settings of losses and metrics."""
        found: list[Setting] = []
        for each in compiled:
            if constructor := self.constructor_of(type(each)):
                found += plain_settings(each, attributes_given(each), constructor)
        return tuple(found[:MOST_SETTINGS])

    def constructor_of(self, kind: type) -> Frame | None:
        return self.frame_of(kind, "__init__")

    def frame_of(self, kind: type, method: str) -> Frame | None:
        """Returns the first line of a method, if a class of the program defines it."""
        code = getattr(vars(defining_class(kind, method))[method], "__code__", None)
        if code is None or not self.context.provenance.is_own(code.co_filename):
            return None
        return Frame(code.co_filename, code.co_firstlineno, code.co_name)


def changed_settings(saved: Settings, loaded: Settings) -> Iterator[tuple[Setting, Setting]]:
    """Yields what a load has made of settings, if the models have the same layers, or the same losses and metrics."""
    if [*map(place_of, saved)] == [*map(place_of, loaded)]:
        yield from (pair for pair in zip(saved, loaded) if pair[0].value != pair[1].value)


def place_of(setting: Setting) -> tuple[str, str, Frame]:
    return setting.layer, setting.name, setting.constructor


def has_settings(event: ModelSettings) -> bool:
    return bool(event.settings or event.compiled)


def plain_settings(thing: Any, values: Mapping[str, Any], constructor: Frame) -> list[Setting]:
    name = type(thing).__name__
    return [
        Setting(name, each, str(value)[:LONGEST_VALUE], constructor)
        for each, value in plain_items(values)
    ]


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
