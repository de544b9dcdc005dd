"""Lets a program that names its devices run on one, for the comparison of several devices with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .patching import Call, Patches, as_plain


def use_one_device(patches: Patches, called_by_program: Callable[[], bool]) -> None:
    """Leaves a CPU whole that the program splits, and a strategy the first of the devices that the program names."""
    import tensorflow as tf

    plain = tf.config.set_logical_device_configuration

    def configure(device: Any, logical_devices: Any) -> Any:
        parts = list(logical_devices)
        return plain(device, parts[:1] if called_by_program() else parts)

    patches.replace(tf.config, "set_logical_device_configuration", as_plain(configure, plain))
    for kind, parameter in (
        (tf.distribute.MirroredStrategy, "devices"),
        (tf.distribute.experimental.CentralStorageStrategy, "compute_devices"),
    ):
        patches.wrap(kind, "__init__", first_only(parameter))


def first_only(parameter: str) -> Callable[[Call], None]:
    """Returns a handler that leaves the first item of a list that is this argument of a call."""

    def cut(call: Call) -> None:
        devices = call[parameter]
        if isinstance(devices, (list, tuple)) and len(devices) > 1:
            call.replace(parameter, devices[:1])

    return cut
