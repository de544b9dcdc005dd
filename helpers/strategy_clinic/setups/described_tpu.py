"""Gives a program that asks for a TPU TensorFlow's TPUStrategy on emulated cores."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from . import runtime, tpu

Replace = Callable[[Any, str, Any], object]

CORES = 8
# By the cores of a replica, the block that they form.
BLOCKS = {1: (1, 1, 1, 1), 2: (1, 1, 1, 2), 4: (1, 2, 1, 2), 8: (2, 2, 1, 2)}


def call(function: Callable[[], Any]) -> Any:
    return function()


def describe_tpu(replace: Replace, devices: int, guard: Callable[..., Any] = call) -> None:
    """Replaces the names by which programs reach a TPU where none is attached; an empty name asks for none.

    With one device the strategy has one replica, otherwise all of the TPU. Calls that are not the program's go to `guard`.
    """
    import tensorflow as tf

    if runtime.tpu_attached():
        return
    resolver, strategy = tpu.resolver_class(), emulated_strategy(devices)
    resolvers = tf.distribute.cluster_resolver
    replace(
        resolvers,
        "TPUClusterResolver",
        resolver_for(resolver, resolvers.TPUClusterResolver, guard),
    )
    for owner, name, instead in (
        (tf.config, "experimental_connect_to_cluster", lambda _: None),
        (tf.tpu.experimental, "initialize_tpu_system", lambda described: described.described),
    ):
        replace(owner, name, unless(resolver, getattr(owner, name), instead))
    replace(tf.distribute, "TPUStrategy", strategy)


def resolver_for(described: Any, plain: Any, guard: Callable[..., Any]) -> Any:
    def resolve(tpu_name: Any = None, *args: Any, **options: Any) -> Any:
        name = options.pop("tpu", tpu_name)
        if not name:
            return plain(name, *args, **options)
        guard(make_devices)
        return described(runtime.devices(CORES), tpu.topology(tpu.DESCRIBED[-1]))

    def connect(tpu: Any = None, *args: Any, **options: Any) -> Any:
        """What `TPUClusterResolver.connect` does: it finds the TPU and initializes it."""
        import tensorflow as tf

        found = resolve(tpu, *args, **options)
        tf.config.experimental_connect_to_cluster(found)
        tf.tpu.experimental.initialize_tpu_system(found)
        return found

    resolve.connect = connect  # type: ignore[attr-defined]  # as the class has it
    return resolve


def unless(kind: Any, plain: Any, instead: Callable[[Any], Any]) -> Any:
    """Returns a function that calls `instead` with an argument of this kind, and otherwise the plain function."""

    def call(*args: Any, **options: Any) -> Any:
        described = [value for value in (*args, *options.values()) if isinstance(value, kind)]
        return instead(described[0]) if described else plain(*args, **options)

    return call


def make_devices() -> None:
    """Splits the CPU into as many devices as the TPU has cores, if TensorFlow has not started yet.

    A GPU is hidden: variables would be made on it, and the cores are CPU devices.
    """
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):
        tf.config.set_visible_devices([], "GPU")
        runtime.split(tf.config.list_physical_devices("CPU"), {})


def emulated_strategy(devices: int) -> Any:
    """Returns a class, since programs ask whether a strategy is one of these; it makes TensorFlow's, as tpu.py emulates it."""
    import tensorflow as tf

    plain = tf.distribute.TPUStrategy
    tpu.strategy_class()  # made while its base is still TensorFlow's own

    class Kind(type(plain)):  # type: ignore[misc] # TensorFlow has no types
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)

    class DescribedTPUStrategy(plain, metaclass=Kind):  # type: ignore[misc, valid-type] # TensorFlow has no types
        def __new__(
            cls, resolver: Any = None, experimental_device_assignment: Any = None, **options: Any
        ) -> Any:
            per_replica = getattr(experimental_device_assignment, "num_cores_per_replica", 1)
            spmd = options.get("experimental_spmd_xla_partitioning", False)
            replicas = 1 if devices == 1 else 0  # all of them
            return tpu.strategy("", BLOCKS[per_replica], spmd, replicas)

    return DescribedTPUStrategy
