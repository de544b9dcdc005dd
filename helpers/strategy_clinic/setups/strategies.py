"""The strategies that a reader can choose: one row each, with how it is built and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base.package_versions import distribution_version
from . import runtime, tpu


def default(count: int) -> Any:
    import tensorflow as tf

    runtime.devices(count)
    return tf.distribute.get_strategy()


def one_device(count: int) -> Any:
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy(runtime.devices(count)[0])


def mirrored(count: int) -> Any:
    """Reduces on one device: with the default collectives, a strategy of another size in this process would die."""
    import tensorflow as tf

    reduction = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(runtime.devices(count), cross_device_ops=reduction)


def central_storage(count: int) -> Any:
    import tensorflow as tf

    names = runtime.devices(count)
    return tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=names, parameter_device=names[0]
    )


def multi_worker(count: int) -> Any:
    """TensorFlow binds the servers of this row and the next to all interfaces; the README warns of it."""
    import tensorflow as tf

    return tf.distribute.MultiWorkerMirroredStrategy()


def parameter_server(count: int) -> Any:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.ParameterServerStrategy(resolver)


def tpu_traced(count: int) -> Any:
    return tpu.strategy()


def attached_tpu(count: int) -> Any:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def always() -> str:
    return ""


def needs_tpu() -> str:
    if not runtime.tpu_attached():
        return "this machine has no TPU; tpu_traced x8 emulates one"
    if not distribution_version("tensorflow-tpu"):
        return "a TPU is attached, but tensorflow-tpu is not installed"
    return ""


@dataclass(frozen=True)
class Row:
    """One strategy: `tasks` are the processes that it needs beside the notebook's, `missing` says why it cannot run."""

    name: str
    build: Callable[[int], Any]
    counts: tuple[int, ...]
    about: str
    tasks: dict[str, int] | None = None
    missing: Callable[[], str] = always
    evidence: str = "executed"


COUNTS = (1, 2, 4, 8)
ONE_SERVER = {"chief": 1, "worker": 2, "ps": 1}
ROWS = (
    Row("default", default, (1,), "no strategy at all"),
    Row("one_device", one_device, (1,), "everything on one named device"),
    Row("mirrored", mirrored, COUNTS, "one copy of each variable on every device"),
    Row(
        "central_storage",
        central_storage,
        COUNTS,
        "one copy of each variable, read by every device",
    ),
    Row("multi_worker", multi_worker, (2,), "one copy in each of two processes", {"worker": 2}),
    Row(
        "parameter_server",
        parameter_server,
        (2,),
        "variables in a server process, two workers",
        ONE_SERVER,
    ),
    Row("tpu_traced", tpu_traced, (8,), "TPUStrategy on a described TPU", evidence="emulated"),
    Row("tpu", attached_tpu, (1, 8), "TPUStrategy on an attached TPU", None, needs_tpu),
)
TABLE = {row.name: row for row in ROWS}


def runner(strategy: Any) -> Any:
    """Returns `strategy.run` for one step at a time: traced on a TPU, which takes no other, and quicker plain elsewhere."""
    import tensorflow as tf

    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    return tf.function(strategy.run) if on_tpu else strategy.run
