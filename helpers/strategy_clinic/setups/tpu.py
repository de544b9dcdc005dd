"""TensorFlow's TPUStrategy on a machine without a TPU: traced by that class, then emulated on CPU devices.

The class, its scope, contexts, variables, checks and the graph that it builds are TensorFlow's. Added are the description
of a TPU, and `emulate`, which runs the traced program of all replicas on logical CPU devices.
"""

import contextlib
import functools
import itertools
import math
from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

from ..base import tf_internals
from ..base.errors import choose
from . import runtime
from .tpu_graph import emulate

Described = namedtuple("Described", "name device_type memory_limit_bytes incarnation")
Tpu = namedtuple("Tpu", "mesh topology")
# Chips in x, y and z, with the cores of a chip, and the compiler's name. From v4 on, TensorFlow has one core for each chip.
TPUS = {
    "v2-8": Tpu((2, 2, 1, 2), "v2:2x2"),
    "v3-8": Tpu((2, 2, 1, 2), "v3:2x2"),
    "v4-8": Tpu((2, 2, 1, 1), "v4:2x2x1"),
    "v5e-8": Tpu((2, 4, 1, 1), "v5e:2x4"),
    "v6e-8": Tpu((2, 4, 1, 1), "v6e:2x4"),
}
DESCRIBED = ["v2-8"]  # the TPU that is described where none is named
# The last programs, each with the strategy that has traced it.
WATCHED: deque[tuple[Any, Any]] = deque(maxlen=16)


class Core(str):
    """The name of a CPU device that TPUStrategy takes for a TPU core: it looks for 'device:TPU:' in the name."""

    def __contains__(self, part: object) -> bool:
        return True


# Functions make the subclasses of TensorFlow's classes, since the import of this module does not import TensorFlow.


@functools.cache
def resolver_class() -> Any:
    import tensorflow as tf

    class Resolver(tf.distribute.cluster_resolver.TPUClusterResolver):  # type: ignore[misc]  # it is Any
        """Describes a TPU system that is not attached."""

        def __init__(self, cores: list[str], described: Any) -> None:
            self.cores, self.described = cores, described

        def get_tpu_system_metadata(self) -> Any:
            devices = [Described(Core(name), "TPU", 0, i + 1) for i, name in enumerate(self.cores)]
            return tf.tpu.experimental.TPUSystemMetadata(
                num_cores=len(devices),
                num_hosts=1,
                num_of_cores_per_host=len(devices),
                topology=self.described,
                devices=devices,
            )

        def master(self, *_: Any, **__: Any) -> str:
            return ""

        def cluster_spec(self) -> Any:
            return tf.train.ClusterSpec({})

    return Resolver


@functools.cache
def assignment_class() -> Any:
    import tensorflow as tf

    class Assignment(tf.tpu.experimental.DeviceAssignment):  # type: ignore[misc]  # it is Any
        """Assigns a CPU device to each core."""

        def tpu_device(self, replica: int = 0, logical_core: int = 0, job: Any = None) -> str:
            number: int = self.tpu_ordinal(replica, logical_core)
            return runtime.devices(number + 1)[number]

        def host_device(self, replica: int = 0, logical_core: int = 0, job: Any = None) -> str:
            return runtime.devices(1)[0]

    return Assignment


@functools.cache
def strategy_class() -> Any:
    import tensorflow as tf

    class EmulatedTPUStrategy(tf.distribute.TPUStrategy):  # type: ignore[misc]  # it is Any
        """TPUStrategy whose traced programs run on CPU devices. What it refuses to trace, it refuses here."""

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]  # TensorFlow has no types
        def run(self, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
            traced = hasattr(fn, "get_concrete_function")
            if tf.executing_eagerly():
                once = functools.partial(super().run, fn)
                run = self.in_graph(fn.python_function) if traced else once
                return run(args, kwargs, options)
            plain = fn.python_function if traced else fn
            replicate = functools.partial(super().run, plain, args, kwargs, options)
            program = tf.function(replicate, autograph=False).get_concrete_function()
            WATCHED.append((self, program))
            return emulate(program)

        def in_graph(self, function: Callable[..., Any]) -> Any:
            """Returns the one traced `run` of a function, so that it is traced once."""
            traced = self.__dict__.setdefault("traced", {})
            return traced.setdefault(function, tf.function(functools.partial(self.run, function)))

    return EmulatedTPUStrategy


def topology(name: str) -> Any:
    """Returns the cores of a TPU as TensorFlow describes them, in the order of their coordinates."""
    import tensorflow as tf

    mesh = TPUS[choose("TPU", name, TPUS)].mesh
    places = [list(reversed(place)) for place in itertools.product(*map(range, reversed(mesh)))]
    return tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=[places])


def strategy(
    name: str = "",
    computation: tuple[int, ...] = (1, 1, 1, 1),
    spmd: bool = False,
    replicas: int = 0,
) -> Any:
    """Returns TPUStrategy on a described TPU. Each replica has a block of cores, `computation`; 0 replicas stand for all."""
    name = name or DESCRIBED[-1]
    described, assignment = topology(name), assignment_class()
    parts = math.prod(computation)
    replicas = replicas or math.prod(TPUS[name].mesh) // parts
    placed = assignment.build(described, computation_shape=list(computation), num_replicas=replicas)
    tpu_strategy = strategy_class()(
        resolver_class()(runtime.devices(replicas * parts), described),
        experimental_device_assignment=assignment(described, placed.core_assignment),
        experimental_spmd_xla_partitioning=spmd,
    )
    # On a TPU all copies of a variable have one handle; on CPU devices each has one.
    tf_internals.replace(tpu_strategy, "_enable_packed_variable_in_eager_mode", False)
    tpu_strategy.described, tpu_strategy.parts, tpu_strategy.spmd = name, parts, spmd
    return tpu_strategy


@contextlib.contextmanager
def watched(name: str) -> Iterator[deque[tuple[Any, Any]]]:
    """Describes this TPU where a program names none, and yields the programs that are traced meanwhile."""
    DESCRIBED.append(choose("TPU", name, TPUS))
    WATCHED.clear()
    try:
        yield WATCHED
    finally:
        DESCRIBED.pop()
