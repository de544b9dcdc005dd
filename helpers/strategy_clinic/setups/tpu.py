"""TensorFlow's own TPUStrategy on a machine without a TPU: traced by that class, then emulated on CPU devices.

The class, its scope, contexts, variables, checks and the graph that it builds are TensorFlow's. Two things are ours: the
description of a TPU that is not there, and `emulate`, which runs the traced program of all replicas on logical CPU devices.
"""

import contextlib
import functools
import itertools
import math
from collections import deque, namedtuple

from ..base import tf_internals
from ..base.errors import choose
from . import runtime
from .tpu_graph import emulate

Described = namedtuple("Described", "name device_type memory_limit_bytes incarnation")
Tpu = namedtuple("Tpu", "mesh topology")
# Chips in x, y and z, with the cores of a chip, and the compiler's name. From v4 on, TensorFlow sees one core in each chip.
TPUS = {
    "v2-8": Tpu((2, 2, 1, 2), "v2:2x2"),
    "v3-8": Tpu((2, 2, 1, 2), "v3:2x2"),
    "v4-8": Tpu((2, 2, 1, 1), "v4:2x2x1"),
    "v5e-8": Tpu((2, 4, 1, 1), "v5e:2x4"),
    "v6e-8": Tpu((2, 4, 1, 1), "v6e:2x4"),
}
DESCRIBED = ["v2-8"]  # the TPU that is described where none is named
WATCHED = deque(maxlen=16)  # the last programs, each with the strategy that traced it


class Core(str):
    """The name of a CPU device that TPUStrategy takes for a TPU core: it asks for 'device:TPU:' in the name."""

    def __contains__(self, part):
        return True


# Classes of TensorFlow's can only be extended once it is imported, so functions make them.


@functools.cache
def resolver_class():
    import tensorflow as tf

    class Resolver(tf.distribute.cluster_resolver.TPUClusterResolver):
        """Answers for a TPU system that is described, not attached."""

        def __init__(self, cores: list[str], described):
            self.cores, self.described = cores, described

        def get_tpu_system_metadata(self):
            devices = [Described(Core(name), "TPU", 0, i + 1) for i, name in enumerate(self.cores)]
            return tf.tpu.experimental.TPUSystemMetadata(
                num_cores=len(devices),
                num_hosts=1,
                num_of_cores_per_host=len(devices),
                topology=self.described,
                devices=devices,
            )

        def master(self, *_, **__):
            return ""

        def cluster_spec(self):
            return tf.train.ClusterSpec({})

    return Resolver


@functools.cache
def assignment_class():
    import tensorflow as tf

    class Assignment(tf.tpu.experimental.DeviceAssignment):
        """Says which CPU device stands for a core."""

        def tpu_device(self, replica=0, logical_core=0, job=None):
            number = self.tpu_ordinal(replica, logical_core)
            return runtime.devices(number + 1)[number]

        def host_device(self, replica=0, logical_core=0, job=None):
            return runtime.devices(1)[0]

    return Assignment


@functools.cache
def strategy_class():
    import tensorflow as tf

    class EmulatedTPUStrategy(tf.distribute.TPUStrategy):
        """TPUStrategy, whose traced programs run on CPU devices; what it refuses to trace, it refuses here."""

        @tf.autograph.experimental.do_not_convert
        def run(self, fn, args=(), kwargs=None, options=None):
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

        def in_graph(self, plain):
            """One for each function, so that a function is traced once."""
            known = self.__dict__.setdefault("known", {})
            return known.setdefault(plain, tf.function(functools.partial(self.run, plain)))

    return EmulatedTPUStrategy


def topology(name: str):
    """The cores of a TPU as TensorFlow sees them, in the order of their coordinates."""
    import tensorflow as tf

    mesh = TPUS[choose("TPU", name, TPUS)].mesh
    places = [list(reversed(place)) for place in itertools.product(*map(range, reversed(mesh)))]
    return tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=[places])


def strategy(name: str = "", computation=(1, 1, 1, 1), spmd: bool = False, replicas: int = 0):
    """TPUStrategy on a described TPU; `computation` is the block of cores that one replica is spread over.

    Without a number of replicas it takes all cores.
    """
    name = name or DESCRIBED[-1]
    described, assignment = topology(name), assignment_class()
    parts = math.prod(computation)
    replicas = replicas or math.prod(TPUS[name].mesh) // parts
    placed = assignment.build(described, computation_shape=list(computation), num_replicas=replicas)
    made = strategy_class()(
        resolver_class()(runtime.devices(replicas * parts), described),
        experimental_device_assignment=assignment(described, placed.core_assignment),
        experimental_spmd_xla_partitioning=spmd,
    )
    # One handle for all copies of a variable is a TPU's; CPU devices have one for each.
    tf_internals.replace(made, "_enable_packed_variable_in_eager_mode", False)
    made.described, made.parts, made.spmd = name, parts, spmd
    return made


@contextlib.contextmanager
def watched(name: str):
    """While it lasts, a TPU is described as this one unless a program says otherwise; gives what is traced for it."""
    DESCRIBED.append(choose("TPU", name, TPUS))
    WATCHED.clear()
    try:
        yield WATCHED
    finally:
        DESCRIBED.pop()
