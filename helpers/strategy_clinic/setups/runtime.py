"""What this machine is: devices to split, GPUs, a TPU, the host it runs on, the Keras generation of this process."""

import contextlib
import glob
import os
import sys
from types import ModuleType

from ..base import tf_internals
from ..base.errors import UserError
from ..base.package_versions import distribution_version, version_of

MOST_DEVICES = 8
GPU_MEMORY_MB = 1024
GENERATIONS = (2, 3)
QUIET_START = {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "0"}


def start_tensorflow():
    """Imports TensorFlow without its start-up lines, which carry times and process ids into a notebook's outputs."""
    for name, value in QUIET_START.items():
        os.environ.setdefault(name, value)
    with _silent_stderr():
        import tensorflow as tf
        from absl import logging
    tf.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.ERROR)


@contextlib.contextmanager
def _silent_stderr():
    """Turns the descriptor of stderr away: C++ writes some of these lines before any log level applies."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def generation() -> int | None:
    """The Keras generation that `tf.keras` already stands for in this process, or None before its first use."""
    keras = vars(sys.modules["tensorflow"]).get("keras") if "tensorflow" in sys.modules else None
    if keras is None or _undecided(keras):
        return None
    return 2 if keras.Model.__module__.startswith("tf_keras") else 3


def _undecided(keras) -> bool:
    """Until its first use a loader stands in the module's place; whatever else it is asked for makes it decide."""
    return type(keras) is not ModuleType and not tf_internals.read(keras, "_tfll_initialized")


def choose_keras(wanted: int):
    """Makes `tf.keras` stand for Keras 2 or 3; a process that already holds the other one is refused."""
    if generation() not in (None, wanted):
        raise UserError(
            f"keras = {wanted} was asked for, but this kernel already holds Keras {generation()}: "
            f"set keras = {wanted} in the parameters cell, restart the kernel and run all cells."
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1" if wanted == 2 else "0"
    os.environ["KERAS_BACKEND"] = "tensorflow"


def settle():
    """Decides what is otherwise decided at first use: what `tf.keras` stands for, and how this kernel is split."""
    import tensorflow as tf

    with _silent_stderr():
        return tf.keras.Model, devices(1)


def accelerators() -> list:
    start_tensorflow()
    import tensorflow as tf

    return tf.config.list_physical_devices("GPU")


def tpu_attached() -> bool:
    named = os.environ.get("TPU_ACCELERATOR_TYPE") or os.environ.get("COLAB_TPU_1VM") == "1"
    return bool(named or os.environ.get("ISTPUVM") or glob.glob("/dev/accel*"))


def kind() -> str:
    """The runtime's word in records: cpu, gpu or tpu. TensorFlow is asked only where a GPU's device file exists."""
    if tpu_attached() and distribution_version("tensorflow-tpu"):
        return "tpu"
    return "gpu" if glob.glob("/dev/nvidia[0-9]*") and accelerators() else "cpu"


def split(devices: list, limits: dict):
    import tensorflow as tf

    per_device = -(-MOST_DEVICES // len(devices))
    for device in devices:
        parts = [tf.config.LogicalDeviceConfiguration(**limits) for _ in range(per_device)]
        tf.config.set_logical_device_configuration(device, parts)


def devices(count: int) -> list[str]:
    """Names of `count` logical devices; splits the GPUs, or the CPU where there is none, on first use.

    Every GPU gives its first part before any gives its second, so real GPUs come before pieces of one.
    """
    import tensorflow as tf

    word = "GPU" if accelerators() else "CPU"
    if len(tf.config.list_physical_devices(word)) < MOST_DEVICES:
        _split_once(word)
    names = [device.name for device in tf.config.list_logical_devices(word)]
    if len(names) < count:
        raise UserError(
            f"devices = {count} was asked for, but TensorFlow was started with {len(names)} {word} device(s) "
            "before the clinic could split it: restart the kernel and run all cells."
        )
    return _spread(names, len(tf.config.list_physical_devices(word)))[:count]


def _split_once(word: str):
    import tensorflow as tf

    physical = tf.config.list_physical_devices(word)
    if tf.config.get_logical_device_configuration(physical[0]) is None:
        with contextlib.suppress(
            RuntimeError
        ):  # TensorFlow is already up; `devices` says what that means
            split(physical, {"memory_limit": GPU_MEMORY_MB} if word == "GPU" else {})


def _spread(names: list[str], physical: int) -> list[str]:
    per_device = max(1, len(names) // physical)
    return [name for first in range(per_device) for name in names[first::per_device]]


def seed(value: int = 7):
    """Every experiment starts from the same random state, whatever ran before it in this kernel."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(value)


def host() -> str:
    table = {
        "colab": "COLAB_RELEASE_TAG",
        "kaggle": "KAGGLE_KERNEL_RUN_TYPE",
        "binder": "BINDER_REPO_URL",
    }
    return next((name for name, variable in table.items() if os.environ.get(variable)), "local")


def versions() -> dict[str, str]:
    names = ("tensorflow", "keras", "tf_keras", "ipywidgets")
    return {name: version_of(name) or "not installed" for name in names}
