"""Observes models of Keras 2 and 3: where they are made and called, what they answer, and what they report."""

from __future__ import annotations

import logging
import os
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from .context import Context
from .definitions import definitions
from .events import (
    DataRanOut,
    FitOverran,
    KerasDistributionSet,
    Metric,
    MetricsReported,
    ModelAnswered,
    ModelCalled,
    ModelCompiled,
    OtherKerasUsed,
    Stack,
    UnbuiltModelRead,
)
from .identity_map import IdentityMap
from .patching import Call
from .training import outside_replicas
from .variables import NO_STRATEGY, Variables, replicas_now, sample

MOST_ANSWERS = 4  # that are reported of the calls from one line
MOST_REPORTS = 8  # of one model
MOST_EPOCHS = 3  # that are reported of one training: weights of later ones differ ever more
RAN_OUT = "Your input ran out of data"  # Keras 3 warns of that, Keras 2 logs it
# The classes that say so, and where they have the steps of an epoch.
STEPS = (("EpochIterator", "steps_per_epoch"), ("DataHandler", "_inferred_steps"))


class KerasModels:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.made_at: IdentityMap[Stack] = IdentityMap()
        self.made_outside: IdentityMap[Stack] = IdentityMap()  # of every scope
        self.compiled_at: IdentityMap[Stack] = IdentityMap()
        self.layers: IdentityMap[Stack] = IdentityMap()  # where each was made
        legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
        self.expected = 2 if legacy else 3  # the version that `tf.keras` is to be
        self.versions: dict[type, int] = {}  # by Keras's class of layers

    def watch(self, package: str, keras: Any) -> None:
        """Watches Keras 3, which is `keras`, or Keras 2, which is `tf_keras`."""
        patches, model = self.context.patches, keras.Model
        patches.wrap(model, "__init__", after=self.model_made)
        patches.wrap(model, "__call__", after=self.called, here=True)  # not of each layer
        for name in ("trainable_variables", "variables", "weights"):
            patches.wrap_property(model, name, self.weights_asked)
        patches.wrap(model, "predict", after=self.answered)
        patches.wrap_new(keras.layers.Layer, self.layer_made)
        self.versions[keras.layers.Layer] = int(keras.__version__.partition(".")[0])
        patches.wrap(model, "compile", before=self.compile_begins, after=self.compiled)
        patches.wrap(model, "fit", before=self.fit_begins, after=self.fitted, group="report")
        patches.wrap(
            model, "evaluate", before=self.evaluate_begins, after=self.evaluated, group="report"
        )
        if package == "keras" and keras.backend.backend() == "tensorflow":
            setting = keras.distribution.set_distribution
            patches.wrap_everywhere(package, setting, self.distribution_set)
        if self.context.is_first("messages"):
            patches.wrap(warnings, "showwarning", after=self.warned)
            # Not its `handle`: the level of a logger may leave the message out.
            patches.wrap(logging.Logger, "warning", after=self.logged)

    def model_made(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        stack = self.context.provenance.stack()
        self.made_at[call.owner] = stack
        if not tf.distribute.has_strategy():
            self.made_outside[call.owner] = stack

    def distribution_set(self, _: Any, call: Call) -> None:
        distribution = call["value"]
        if distribution is not None:
            kind, devices = type(distribution).__name__, distribution.device_mesh.devices.size
            stack = self.context.provenance.stack()
            self.context.emit(KerasDistributionSet(stack, kind, int(devices)))

    def layer_made(self, layer: Any) -> None:
        self.layers[layer] = self.context.provenance.stack()
        version = next(each for kind, each in self.versions.items() if isinstance(layer, kind))
        if version != self.expected and self.context.is_first("keras", version):
            self.context.emit(OtherKerasUsed(version))

    def layer_location(self, number: int) -> Stack:
        """Returns where the innermost layer that has this variable was made."""
        sizes: list[tuple[int, Stack]] = []
        for layer, stack in self.layers.items():
            if number in self.variables.numbers_of(layer.variables):
                sizes.append((len(layer.variables), stack))
        return min(sizes, default=(0, ()), key=lambda pair: pair[0])[1]

    # Calls

    def called(self, result: Any, call: Call) -> None:
        """Reports how many examples each replica gives to a model."""
        import tensorflow as tf

        if outside_replicas():
            self.answered(result, call)
        if in_scratch_graph():
            return
        inputs = tf.nest.flatten(call.args[1] if len(call.args) > 1 else call.kwargs)
        shape = getattr(inputs[0], "shape", None) if inputs else None
        size = shape[0] if shape and len(shape) else None  # a number has no dimension
        replicas = max(1, replicas_now())
        serial = self.context.serial(call.owner)
        if size is not None and self.context.is_first("called", serial, size, replicas):
            numbers = self.variables.numbers_of(call.owner.variables)
            stack = self.context.provenance.stack()
            made_at = self.made_at.get(call.owner) or ()
            trainable = self.variables.numbers_of(call.owner.trainable_variables)
            self.context.emit(
                ModelCalled(stack, int(size), replicas, numbers, made_at, serial, trainable)
            )

    def answered(self, result: Any, call: Call) -> None:
        """Reports the first answers to calls from one line; Keras's symbolic inputs have none."""
        import numpy as np
        import tensorflow as tf

        outputs = [value for value in tf.nest.flatten(result) if hasattr(value, "dtype")]
        if not outputs:
            return
        output, provenance = outputs[0], self.context.provenance
        if not isinstance(output, (np.ndarray, np.generic)) and not hasattr(output, "numpy"):
            return
        if self.context.count("answered", provenance.call_path()) <= MOST_ANSWERS:
            array = output.numpy() if hasattr(output, "numpy") else output
            self.context.emit(ModelAnswered(provenance.stack(), sample(array)))

    def weights_asked(self, weights: Any, model: Any) -> None:
        provenance = self.context.provenance
        if not getattr(model, "built", True) and provenance.called_by_program():
            stack, serial = provenance.stack(), self.context.serial(model)
            if stack and self.context.is_first("unbuilt", stack, serial):
                made_at = self.made_at.get(model) or ()
                numbers = self.variables.numbers_of(weights)
                self.context.emit(UnbuiltModelRead(stack, model.name, made_at, serial, numbers))

    # Data

    def warned(self, _: Any, call: Call) -> None:
        self.ran_out(str(call["message"]))

    def logged(self, _: Any, call: Call) -> None:
        self.ran_out(str(call["msg"]))

    def ran_out(self, message: str) -> None:
        """Reports data that ended, each time if a number of steps was asked for; Keras 3 warns of any other end, too."""
        if RAN_OUT in message and (
            (steps := asked_steps()) or self.context.is_first("data of unknown length")
        ):
            self.context.emit(DataRanOut(self.context.provenance.stack(), steps))

    def generator_read(self, model: Any, data: Any, steps: int | None) -> None:
        """Reports a Python generator that is read to its end: Python shows the warning of the first data alone."""
        is_whole = isinstance(data, types.GeneratorType) and not steps
        if is_whole and type(model.distribute_strategy).__name__ != NO_STRATEGY:
            stack = self.context.provenance.stack()
            if self.context.is_first("generator", stack):
                self.context.emit(DataRanOut(stack, 0, generator=True))

    # Metrics

    def compile_begins(self, call: Call) -> None:
        """Reports the call before it is made, since it may raise.

        A model of Keras 2 raises if it is asked for its variables before it is built.
        """
        steps, stack = call["steps_per_execution"], self.context.provenance.stack()
        numbers = self.variables.numbers_of(call.owner.variables if call.owner.built else ())
        known, outside = steps if isinstance(steps, int) else 0, self.made_outside.get(call.owner)
        given = {**call.bound.arguments, **call.bound.arguments.get("kwargs", {})}
        own = tuple(definitions(call.owner, given, self.context.provenance.is_own))
        self.context.emit(ModelCompiled(stack, known, numbers, outside or (), own))

    def compiled(self, _: Any, call: Call) -> None:
        self.compiled_at[call.owner] = self.context.provenance.stack()

    def fit_begins(self, call: Call) -> None:
        call.state = steps_taken(call.owner)

    def fitted(self, history: Any, call: Call) -> None:
        """Reports the first epochs: what is wrong may show only once the model has learned something."""
        values = history.history
        for epoch in range(min(MOST_EPOCHS, max(map(len, values.values()), default=0))):
            of_epoch = {name: each[epoch] for name, each in values.items() if len(each) > epoch}
            self.reported(call.owner, of_epoch)
        per_epoch = call["steps_per_epoch"]
        self.generator_read(call.owner, call["x"], per_epoch)
        asked = (per_epoch or 0) * (call["epochs"] - call["initial_epoch"])
        taken = steps_taken(call.owner) - (call.state or 0)
        if taken > asked > 0:
            stack, steps = self.context.provenance.stack(), steps_per_execution(call.owner)
            self.context.emit(FitOverran(stack, asked, taken, steps))

    def evaluate_begins(self, call: Call) -> None:
        self.generator_read(call.owner, call["x"], call["steps"])

    def evaluated(self, result: Any, call: Call) -> None:
        is_named = isinstance(result, dict)
        self.reported(call.owner, result if is_named else call.owner.get_metrics_result())

    def reported(self, model: Any, values: Mapping[str, Any]) -> None:
        metrics = tuple(
            Metric(name, number_of(value))
            for name, value in values.items()
            if not isinstance(value, dict)
        )
        if self.context.count("reported", self.context.serial(model)) <= MOST_REPORTS:
            compiled_at = self.compiled_at.get(model) or ()
            stack = self.context.provenance.stack()
            self.context.emit(MetricsReported(stack, metrics, compiled_at))


def number_of(value: Any) -> float:
    """Returns what a metric returns as a number; some return a variable of theirs."""
    return float(value.numpy() if hasattr(value, "numpy") else value)


def steps_per_execution(model: Any) -> int:
    """Returns how many steps one call of the model's graph takes; Keras 2 keeps this in a variable."""
    steps: Any = getattr(model, "steps_per_execution", None)
    steps = steps or getattr(model, "_steps_per_execution", None) or 1
    if isinstance(steps, str):
        return 1
    return int(steps.numpy() if hasattr(steps, "numpy") else steps)


def steps_taken(model: Any) -> int:
    """Returns the number of updates that the optimizer of a model counts."""
    iterations = getattr(getattr(model, "optimizer", None), "iterations", None)
    return 0 if iterations is None else int(iterations.numpy())


def asked_steps() -> int:
    """Returns the steps of an epoch for the loop of Keras's that runs now; 0 if nobody has asked for a number."""
    for owner in owners_of_frames():
        for kind, name in STEPS:
            if type(owner).__name__.endswith(kind):
                return int(getattr(owner, name, None) or 0)
    return 0


def owners_of_frames() -> Iterator[Any]:
    """Yields the objects whose methods run now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_locals.get("self")
        frame = frame.f_back


def in_scratch_graph() -> bool:
    """Tells whether Keras 3 only finds out the shapes that a model answers with, as `fit` does before the first step."""
    import tensorflow as tf

    if tf.executing_eagerly():
        return False
    return getattr(tf.compat.v1.get_default_graph(), "name", "").startswith("scratch_graph")
