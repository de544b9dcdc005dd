"""Loads the files of whole models once more at the end, and compares what is loaded with what was saved."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import ChangedSetting, LoadedOtherwise, LoadFailed, Setting, Stack
from .identity_map import IdentityMap
from .model_settings import LONGEST_VALUE, OF_ALL_LAYERS, PLAIN, ModelsSettings, changed_settings
from .patching import Call, is_of_keras
from .variables import weights_of

MOST_FILES = 3  # that are loaded, the last ones
MOST_ENTRIES = 5_000_000  # of the weights of a model that is loaded
MOST_TRIED = 20  # attributes without which a loaded model is called
MOST_MESSAGE = 300
REASON = re.compile(r"ncountered[\w ]*: ")  # in errors of Keras 3, before what raised
ASKS_FOR_TRUST = "safe_mode=False"  # code in a file, which is the program's to run
TOLERANCE, OF_HALF_PRECISION = 1e-3, 3e-2  # relative to the largest entry of an answer
BATCH, UNKNOWN = 2, 4  # a batch, and other dimensions that a program leaves open


@dataclass(frozen=True)
class SavedFile:
    model: Any
    keras: Any  # the package that has saved it
    location: Stack


@dataclass(frozen=True)
class Changed:
    """An attribute of a layer of the program that the loaded layer has with another value, or has not."""

    saved: Any  # the layers
    loaded: Any
    name: str


class FilesLoadedAgain:
    def __init__(self, context: Context, settings: ModelsSettings) -> None:
        self.context, self.settings = context, settings
        self.files: dict[
            str, SavedFile
        ] = {}  # the last save of each path, which keep the models until the end
        self.inputs: IdentityMap[Any] = IdentityMap()  # by model, how it was called first
        self.loads: dict[str, Any] = {}  # what the program has made of them
        self.read: set[str] = set()  # files of which the program takes the weights alone

    def watch_keras(self, package: str, keras: Any) -> None:
        patches, model = self.context.patches, keras.Model
        patches.wrap(model, "__call__", after=self.called, here=True)
        patches.wrap(model, "save", after=lambda _, call: self.saved(keras, call))
        patches.wrap(model, "load_weights", after=self.weights_loaded)
        patches.wrap_everywhere(package, keras.models.load_model, self.model_loaded)

    def called(self, _: Any, call: Call) -> None:
        if self.inputs.get(call.owner) is None:
            given = {name: value for name, value in call.kwargs.items() if name != "training"}
            self.inputs[call.owner] = specified((call.args[1:], given))

    def saved(self, keras: Any, call: Call) -> None:
        path, stack = absolute(call["filepath"]), self.context.provenance.stack()
        keep(self.files, path, SavedFile(call.owner, keras, stack))

    def weights_loaded(self, _: Any, call: Call) -> None:
        self.read.add(absolute(call["filepath"]))

    def model_loaded(self, model: Any, call: Call) -> None:
        keep(self.loads, absolute(call["filepath"]), model)

    # The end

    def report(self) -> None:
        """Reports what is loaded otherwise. It is for processes that end now: a model may change as it is called."""
        import tensorflow as tf

        settings = self.context.settings
        if not tf.executing_eagerly() or settings.is_changed or "TF_CONFIG" in os.environ:
            return
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for path, file in self.files.items():
                is_there = os.path.exists(path) and path not in self.read
                if is_there and entries_of(file.model) <= MOST_ENTRIES:
                    self.context.guard_always(self.compare, path, file)

    def compare(self, path: str, file: SavedFile) -> None:
        model, loaded, inputs = file.model, self.loaded(path, file), self.inputs.get(file.model)
        if loaded is None or inputs is None or not same_weights(model, loaded):
            return
        try:
            call = made_of(inputs)
            expected, again, answer = (answer_of(each, call) for each in (model, model, loaded))
        except Exception:  # numbers that are made up need not fit a model
            return
        if not agree(expected, again) or agree(expected, answer):
            return
        needed = needed_attributes(changed_attributes(model, loaded), expected, loaded, call)
        settings = [*filter(None, map(self.changed_setting, needed))]
        told = tuple(settings or self.changed_settings(model, loaded))
        apart, is_reason = most_apart(expected, answer), bool(settings)
        self.context.emit(LoadedOtherwise(file.location, path, told, is_reason, *apart))

    def loaded(self, path: str, file: SavedFile) -> Any:
        """Returns the model that the program has made of a file, or else one that is made of it now."""
        if path in self.loads:
            return self.loads[path]
        load, own = file.keras.models.load_model, self.objects_of_program(file.model)
        try:
            return load(path, compile=False, custom_objects=own)
        except Exception as error:
            if ASKS_FOR_TRUST in str(error):
                return None
            reason = REASON.split(str(error))[-1]
            kinds = [type(each) for each in own_layers(file.model) if type(each).__name__ in reason]
            frames = filter(None, map(self.settings.constructor_of, kinds))
            message = f"{type(error).__name__}: {reason}"[:MOST_MESSAGE]
            self.context.emit(LoadFailed(file.location, path, message, next(frames, None)))
            return None

    def objects_of_program(self, model: Any) -> dict[str, Any]:
        """Returns the classes and functions of the program, which whoever loads its file must give, too."""
        found: dict[str, Any] = {type(each).__name__: type(each) for each in own_layers(model)}
        kinds = type, types.FunctionType
        for _, names in self.context.provenance.modules():
            own = {name: each for name, each in names.items() if isinstance(each, kinds)}
            found = {**own, **found}
        return found

    def changed_settings(self, saved: Any, loaded: Any) -> list[ChangedSetting]:
        """Returns what has become of the settings of layers that classes of the program make."""
        pairs = changed_settings(*map(self.settings.settings_of_layers, (saved, loaded)))
        return [ChangedSetting(one, other.value) for one, other in pairs][:MOST_TRIED]

    def changed_setting(self, changed: Changed) -> ChangedSetting | None:
        kind = type(changed.saved)
        names = "__init__", "call"
        frame = next(filter(None, (self.settings.frame_of(kind, name) for name in names)), None)
        if frame is None:
            return None
        before, after = vars(changed.saved), vars(changed.loaded)
        setting = Setting(kind.__name__, changed.name, shown(before[changed.name]) or "", frame)
        now = shown(after[changed.name]) if changed.name in after else None
        return ChangedSetting(setting, now or "nothing")


def keep(last: dict[str, Any], path: str, value: Any) -> None:
    """Adds what belongs to a path, and forgets the oldest."""
    last.pop(path, None)
    last[path] = value
    for earlier in [*last][:-MOST_FILES]:
        del last[earlier]


def absolute(path: Any) -> str:
    return os.path.abspath(str(path))


# Models


def own_layers(model: Any) -> list[Any]:
    """Returns the layers of a model, itself included, that are of classes of the program."""
    layers = tf_internals.read(model, "_flatten_layers")()
    return [each for each in layers if not is_of_keras(type(each))]


def entries_of(model: Any) -> int:
    return sum(math.prod(weight.shape) for weight in weights_of(model))


def same_weights(one: Any, other: Any) -> bool:
    import numpy as np

    first, second = one.get_weights(), other.get_weights()
    return len(first) == len(second) and all(map(np.array_equal, first, second))


def changed_attributes(saved: Any, loaded: Any) -> list[Changed]:
    """Returns the attributes in which layers of the program differ from those that they became."""
    one, other = own_layers(saved), own_layers(loaded)
    if [*map(type, one)] != [*map(type, other)]:
        return []
    return [
        Changed(mine, theirs, name)
        for mine, theirs in zip(one, other)
        for name, value in vars(mine).items()
        if name not in OF_ALL_LAYERS and shown(value) is not None
        if not is_same(value, vars(theirs).get(name))
    ]


def shown(value: Any) -> str | None:
    """Returns a plain value, an array or a list of plain values as text; None for other things."""
    import numpy as np
    import tensorflow as tf

    if isinstance(value, np.ndarray) or tf.is_tensor(value) and hasattr(value, "numpy"):
        return f"an array of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and all(isinstance(each, PLAIN) for each in value):
        return str(list(value))[:LONGEST_VALUE]
    return str(value)[:LONGEST_VALUE] if isinstance(value, PLAIN) else None


def is_same(one: Any, other: Any) -> bool:
    import numpy as np

    return shown(one) == shown(other) and bool(np.array_equal(one, other))


# Answers


def specified(given: Any) -> Any:
    """Returns the arguments of a call with a description in the place of each tensor."""
    import tensorflow as tf

    def of(value: Any) -> Any:
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            return value
        return tf.TensorSpec(value.shape, tf.as_dtype(value.dtype))

    return tf.nest.map_structure(of, given)


def made_of(inputs: Any) -> Any:
    """Returns the arguments of a call with numbers in the place of each description; the same ones each time."""
    import tensorflow as tf

    def made(spec: Any) -> Any:
        if not isinstance(spec, tf.TensorSpec):
            return spec
        first, *others = spec.shape.as_list() or [1]
        shape = [first or BATCH, *(each or UNKNOWN for each in others)] if spec.shape.rank else []
        if spec.dtype == tf.string:
            return tf.fill(shape, "a")
        if spec.dtype.is_floating:
            numbers = tf.random.stateless_normal(shape, seed=(1, 2))
        else:
            numbers = tf.random.stateless_uniform(shape, (1, 2), 0, 2, tf.int32)
        return tf.cast(numbers, spec.dtype)

    return tf.nest.map_structure(made, inputs)


def answer_of(model: Any, call: Any) -> list[Any]:
    """Returns the numbers that a model answers with."""
    import numpy as np
    import tensorflow as tf

    args, kwargs = call
    outputs = [np.asarray(each) for each in tf.nest.flatten(model(*args, **kwargs))]
    return [each for each in outputs if each.dtype.kind == "f" or each.dtype == "bfloat16"]


def answer_with(changed: Sequence[Changed], loaded: Any, call: Any) -> list[Any]:
    """Returns the answers of a loaded model with attributes of the saved one."""
    before = [(vars(each.loaded), dict(vars(each.loaded))) for each in changed]
    try:
        for each in changed:
            vars(each.loaded)[each.name] = vars(each.saved)[each.name]
        return answer_of(loaded, call)
    except Exception:  # with this value the layer cannot be called
        return []
    finally:
        for attributes, kept in before:
            attributes.clear()
            attributes.update(kept)


def needed_attributes(
    changed: list[Changed], expected: list[Any], loaded: Any, call: Any
) -> list[Changed]:
    """Returns the attributes that a loaded model needs to answer as the saved one; none if they are not all that differs."""
    if not agree(expected, answer_with(changed, loaded, call)):
        return []
    needed = changed
    for each in changed[:MOST_TRIED]:
        others = [other for other in needed if other is not each]
        if agree(expected, answer_with(others, loaded, call)):
            needed = others
    return needed


def agree(one: list[Any], other: list[Any]) -> bool:
    """Tells whether answers are the same but for rounding. What is no number agrees with everything."""
    import numpy as np

    if [each.shape for each in one] != [each.shape for each in other]:
        return False
    for first, second in zip(one, other):
        apart, size = np.abs(first - second), np.abs(first).max(initial=0.0)
        rounding = OF_HALF_PRECISION if first.dtype.itemsize < 4 else TOLERANCE
        if (apart > rounding * size).any():
            return False
    return True


def most_apart(one: list[Any], other: list[Any]) -> tuple[float, float]:
    """Returns the entries of two answers that differ most; nothing of answers of other shapes."""
    import numpy as np

    pairs = [
        (float(abs(a - b)), float(a), float(b))
        for first, second in zip(one, other)
        for a, b in zip(np.ravel(first), np.ravel(second))
    ]
    _, mine, theirs = max(pairs, default=(0.0, 0.0, 0.0))
    return mine, theirs
