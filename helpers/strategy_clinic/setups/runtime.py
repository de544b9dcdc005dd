"""This machine and this process: devices and how they are split, a TPU, the host, and the version of Keras."""

import contextlib
import glob
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..base import tf_internals
from ..base.errors import UserError
from ..base.package_versions import distribution_version, version_of
from .start_variables import TENSORFLOW_START

MOST_DEVICES = 8
GPU_MEMORY_MB = 1024
KERAS_VERSIONS = (2, 3)
HOSTS = {
    "colab": "COLAB_RELEASE_TAG",
    "kaggle": "KAGGLE_KERNEL_RUN_TYPE",
    "binder": "BINDER_REPO_URL",
}


def start_tensorflow() -> None:
    """Imports TensorFlow without its start-up lines, whose times and process ids would be in a notebook's outputs."""
    for name, value in TENSORFLOW_START.items():
        os.environ.setdefault(name, value)
    with _silent_stderr():
        import tensorflow as tf
        from absl import logging
    tf.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.ERROR)


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Redirects the descriptor of stderr: C++ writes some of these lines before any log level applies."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def keras_version() -> int | None:
    """Returns the version of Keras that `tf.keras` stands for in this process, or None before its first use."""
    keras = vars(sys.modules["tensorflow"]).get("keras") if "tensorflow" in sys.modules else None
    if keras is None:
        return None
    # Until its first use a loader stands for the module. Any attribute but this one makes the loader decide.
    if type(keras) is not ModuleType and not tf_internals.read(keras, "_tfll_initialized"):
        return None
    return 2 if keras.Model.__module__.startswith("tf_keras") else 3


def choose_keras(wanted: int) -> None:
    """Makes `tf.keras` stand for Keras 2 or 3; raises a UserError if it already stands for the other one."""
    if keras_version() not in (None, wanted):
        raise UserError(
            f"keras = {wanted} was asked for, but this kernel already holds Keras {keras_version()}: "
            f"set keras = {wanted} in the parameters cell, restart the kernel and run all cells."
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1" if wanted == 2 else "0"
    os.environ["KERAS_BACKEND"] = "tensorflow"


def fix_keras_and_devices() -> None:
    """Decides now what TensorFlow decides at first use: what `tf.keras` stands for, and the logical devices."""
    import tensorflow as tf

    with _silent_stderr():
        tf.keras.Model  # noqa: B018 - the first use
        devices(1)


def accelerators() -> list[Any]:
    """Returns the physical GPUs."""
    start_tensorflow()
    import tensorflow as tf

    return list(tf.config.list_physical_devices("GPU"))


def tpu_attached() -> bool:
    named = os.environ.get("TPU_ACCELERATOR_TYPE") or os.environ.get("COLAB_TPU_1VM") == "1"
    return bool(named or os.environ.get("ISTPUVM") or glob.glob("/dev/accel*"))


def kind() -> str:
    """Returns cpu, gpu or tpu. TensorFlow is asked only where a GPU's device file exists."""
    if tpu_attached() and distribution_version("tensorflow-tpu"):
        return "tpu"
    return "gpu" if glob.glob("/dev/nvidia[0-9]*") and accelerators() else "cpu"


def split(physical: list[Any], limits: dict[str, int]) -> None:
    """Splits physical devices into MOST_DEVICES logical ones together, each with these limits."""
    import tensorflow as tf

    per_device = -(-MOST_DEVICES // len(physical))
    for device in physical:
        parts = [tf.config.LogicalDeviceConfiguration(**limits) for _ in range(per_device)]
        tf.config.set_logical_device_configuration(device, parts)


def devices(count: int) -> list[str]:
    """Returns the names of `count` logical devices; splits the GPUs, or the CPU without any, on first use.

    The first parts of all GPUs come before their second parts, so that real GPUs come before pieces of one.
    """
    import tensorflow as tf

    word = "GPU" if accelerators() else "CPU"
    physical = tf.config.list_physical_devices(word)
    split_already = tf.config.get_logical_device_configuration(physical[0]) is not None
    if len(physical) < MOST_DEVICES and not split_already:
        # If TensorFlow is already up, there are too few devices, which is said below.
        with contextlib.suppress(RuntimeError):
            split(physical, {"memory_limit": GPU_MEMORY_MB} if word == "GPU" else {})
    names = [device.name for device in tf.config.list_logical_devices(word)]
    if len(names) < count:
        raise UserError(
            f"devices = {count} was asked for, but TensorFlow was started with {len(names)} {word} device(s) "
            "before the clinic could split it: restart the kernel and run all cells."
        )
    return _spread(names, len(physical))[:count]


def _spread(names: list[str], physical: int) -> list[str]:
    """Returns the names of parts in an order in which all devices come before their second parts."""
    per_device = max(1, len(names) // physical)
    return [name for first in range(per_device) for name in names[first::per_device]]


def seed(value: int = 7) -> None:
    """Sets the random state from which every experiment starts."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(value)


def host() -> str:
    return next((name for name, variable in HOSTS.items() if os.environ.get(variable)), "local")


def versions() -> dict[str, str]:
    names = ("tensorflow", "keras", "tf_keras", "ipywidgets")
    return {name: version_of(name) or "not installed" for name in names}
