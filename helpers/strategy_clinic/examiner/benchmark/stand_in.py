"""Stands in for `strategy_clinic` in a program of the benchmark: a copy of this file, without the checks of a notebook."""

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from strategy_clinic.base.errors import Unavailable
from strategy_clinic.experiments import checks as real
from strategy_clinic.setups import formats, runtime, strategies, tpu
from strategy_clinic.setups.parameters import Setup
from strategy_clinic.setups.strategies import runner

__all__ = [
    "Unavailable",
    "formats",
    "runner",
    "runtime",
    "tpu",
]  # as they are; the others are below


def nothing(*arguments: Any, **options: Any) -> None:
    pass


class Nothing:
    def assert_optimizer_resumed(self, model: Any, steps: int) -> None:
        model.optimizer.build(model.trainable_variables)  # as the check does, before files are gone

    def __getattr__(self, name: str) -> Any:
        return real.variable_of if name == "variable_of" else nothing


class Proof:
    """Shows what a program computed; nobody compares it with what is right."""

    def __init__(self, what: str, got: Sequence[Any], want: Any, tolerance: float = 0):
        shown = [tf.reshape(tf.cast(each, "float64"), [-1]) for each in got]
        print(what, [[float(x) for x in each] for each in shown])

    def unwrap(self) -> "Proof":
        return self


def build_strategy(setup: Setup) -> Any:
    """Makes the setup's strategy on as many devices as there are in this run."""
    if setup.strategy == "mirrored":
        return tf.distribute.MirroredStrategy()
    parts = tf.config.get_logical_device_configuration(tf.config.list_physical_devices("CPU")[0])
    here = len(parts or [None])
    if setup.strategy == "tpu_traced":
        return tpu.strategy(replicas=1 if here == 1 else 0)
    if setup.strategy == "central_storage":
        setup = setup.but(devices=here)
    return strategies.TABLE[setup.strategy].build(setup.devices)


def experiment(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def observe(**variables: Any) -> None:
    pass


def values_of(weight: Any) -> list[Any]:
    variable = real.variable_of(weight)
    return [part.numpy() for part in getattr(variable, "values", [variable])]


def launch(place: Any, pairs: Any) -> list[Any]:
    return [types.SimpleNamespace(unwrap=functools.partial(run, setup)) for run, setup in pairs]


def __getattr__(name: str) -> Any:
    """Whatever else a notebook takes for its page."""
    if name.startswith("_"):
        raise AttributeError(name)
    return nothing


checks = compiler = Nothing()
figures = types.SimpleNamespace(values_of=values_of)
workers = types.SimpleNamespace(launch=launch)
