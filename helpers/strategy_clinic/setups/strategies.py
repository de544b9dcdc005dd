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
    """TensorFlow binds the servers of this row and the next to all interfaces; the page on security warns of it."""
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


# The lines of a program that make the strategy for this many devices of one kind


TPU_LINES = (
    'resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")',
    "tf.config.experimental_connect_to_cluster(resolver)",
    "tf.tpu.experimental.initialize_tpu_system(resolver)",
    "strategy = tf.distribute.TPUStrategy(resolver)",
)


def default_lines(count: int, kind: str) -> tuple[str, ...]:
    return ("strategy = tf.distribute.get_strategy()",)


def one_device_lines(count: int, kind: str) -> tuple[str, ...]:
    return (f'strategy = tf.distribute.OneDeviceStrategy("{kind}:0")',)


def mirrored_lines(count: int, kind: str) -> tuple[str, ...]:
    strategy = f"strategy = tf.distribute.MirroredStrategy({listed(count, kind)})"
    return *split(count, kind), strategy


def central_storage_lines(count: int, kind: str) -> tuple[str, ...]:
    storage = f'{listed(count, kind)}, "{kind}:0"'
    strategy = f"strategy = tf.distribute.experimental.CentralStorageStrategy({storage})"
    return *split(count, kind), strategy


def multi_worker_lines(count: int, kind: str) -> tuple[str, ...]:
    return ("strategy = tf.distribute.MultiWorkerMirroredStrategy()",)


def parameter_server_lines(count: int, kind: str) -> tuple[str, ...]:
    return (
        "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
        "strategy = tf.distribute.ParameterServerStrategy(resolver)",
    )


def tpu_lines(count: int, kind: str) -> tuple[str, ...]:
    return TPU_LINES


def split(count: int, kind: str) -> tuple[str, ...]:
    """Returns the lines that make several devices of one; none where there are enough, or where one is asked for."""
    if count == 1 or (kind == "GPU" and len(runtime.accelerators()) >= count):
        return ()
    limit = f"memory_limit={runtime.GPU_MEMORY_MB}" if kind == "GPU" else ""
    name = kind.lower()
    return (
        f'{name} = tf.config.list_physical_devices("{kind}")[0]',
        f"tf.config.set_logical_device_configuration({name}, "
        f"[tf.config.LogicalDeviceConfiguration({limit})] * {count})",
    )


def listed(count: int, kind: str) -> str:
    return "[" + ", ".join(f'"{kind}:{number}"' for number in range(count)) + "]"


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
    """One strategy: how this process builds it, and the lines with which a program does.

    `tasks` are the processes that it needs beside the notebook's, `missing` says why it cannot run.
    """

    name: str
    build: Callable[[int], Any]
    lines: Callable[[int, str], tuple[str, ...]]
    counts: tuple[int, ...]
    about: str
    tasks: dict[str, int] | None = None
    missing: Callable[[], str] = always
    evidence: str = "executed"


COUNTS = (1, 2, 4, 8)
ONE_SERVER = {"chief": 1, "worker": 2, "ps": 1}
ROWS = (
    Row("default", default, default_lines, (1,), "no strategy at all"),
    Row("one_device", one_device, one_device_lines, (1,), "everything on one named device"),
    Row("mirrored", mirrored, mirrored_lines, COUNTS, "one copy of each variable on every device"),
    Row(
        "central_storage",
        central_storage,
        central_storage_lines,
        COUNTS,
        "one copy of each variable, read by every device",
    ),
    Row(
        "multi_worker",
        multi_worker,
        multi_worker_lines,
        (2,),
        "one copy in each of two processes",
        {"worker": 2},
    ),
    Row(
        "parameter_server",
        parameter_server,
        parameter_server_lines,
        (2,),
        "variables in a server process, two workers",
        ONE_SERVER,
    ),
    Row(
        "tpu_traced",
        tpu_traced,
        tpu_lines,
        (8,),
        "TPUStrategy on a described TPU",
        evidence="emulated",
    ),
    Row("tpu", attached_tpu, tpu_lines, (1, 8), "TPUStrategy on an attached TPU", None, needs_tpu),
)
TABLE = {row.name: row for row in ROWS}


def runner(strategy: Any) -> Any:
    """Returns `strategy.run` for one step at a time: traced on a TPU, which accepts nothing else, and plain elsewhere."""
    import tensorflow as tf

    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    return tf.function(strategy.run) if on_tpu else strategy.run
