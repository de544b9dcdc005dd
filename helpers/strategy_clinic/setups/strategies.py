"""The strategies a reader can switch between: one row each, with how to build it and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass

from ..base.errors import Unavailable
from ..base.package_versions import distribution_version
from . import runtime, tpu


def default(count):
    import tensorflow as tf

    runtime.devices(count)
    return tf.distribute.get_strategy()


def one_device(count):
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy(runtime.devices(count)[0])


def mirrored(count):
    """Reduces on one device: with the default collectives, a strategy of another size in this process would die (fm36)."""
    import tensorflow as tf

    reduction = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(runtime.devices(count), cross_device_ops=reduction)


def central_storage(count):
    import tensorflow as tf

    names = runtime.devices(count)
    return tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=names, parameter_device=names[0]
    )


def multi_worker(count):
    """TensorFlow binds the servers of this row and the next to all interfaces; the README warns of it."""
    import tensorflow as tf

    return tf.distribute.MultiWorkerMirroredStrategy()


def parameter_server(count):
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.ParameterServerStrategy(resolver)


def tpu_traced(count):
    return tpu.strategy()


def attached_tpu(count):
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
    return (
        ""
        if distribution_version("tensorflow-tpu")
        else "a TPU is attached, but tensorflow-tpu is not installed"
    )


@dataclass(frozen=True)
class Row:
    """One strategy: `tasks` names the processes it needs beside the notebook's, `missing` why it cannot run here."""

    name: str
    build: Callable
    counts: tuple[int, ...]
    about: str
    tasks: dict | None = None
    missing: Callable[[], str] = always
    evidence: str = "executed"


ROWS = (
    Row("default", default, (1,), "no strategy at all"),
    Row("one_device", one_device, (1,), "everything on one named device"),
    Row("mirrored", mirrored, (1, 2, 4, 8), "one copy of each variable on every device"),
    Row(
        "central_storage",
        central_storage,
        (1, 2, 4, 8),
        "one copy of each variable, read by every device",
    ),
    Row("multi_worker", multi_worker, (2,), "one copy in each of two processes", {"worker": 2}),
    Row(
        "parameter_server",
        parameter_server,
        (2,),
        "variables in a server process, two workers",
        {"chief": 1, "worker": 2, "ps": 1},
    ),
    Row(
        "tpu_traced",
        tpu_traced,
        (8,),
        "TPUStrategy on a described TPU",
        evidence="emulated",
    ),
    Row("tpu", attached_tpu, (1, 8), "TPUStrategy on an attached TPU", None, needs_tpu),
)
TABLE = {row.name: row for row in ROWS}


def require(setup):
    """Refuses a setup that cannot run on this machine, with the reason."""
    reason = TABLE[setup.strategy].missing()
    if reason:
        raise Unavailable(f"{setup.strategy} is unavailable: {reason}.")


def runner(strategy):
    """`strategy.run` for one step at a time: a TPU takes traced steps only, and the others cost less without."""
    import tensorflow as tf

    return (
        tf.function(strategy.run)
        if isinstance(strategy, tf.distribute.TPUStrategy)
        else strategy.run
    )


def build_strategy(setup):
    """The tf.distribute.Strategy that a setup names."""
    require(setup)
    return TABLE[setup.strategy].build(setup.devices)
