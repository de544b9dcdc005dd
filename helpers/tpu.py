"""TensorFlow's own TPUStrategy on a machine without a TPU: traced by that class, then emulated on CPU devices.

The class, its scope, contexts, variables, checks and the graph that it builds are TensorFlow's. Two things are ours: the
description of a TPU that is not there, and `emulate`, which runs the traced program of all replicas on logical CPU devices.
"""

import contextlib
import functools
import itertools
import math
from collections import deque, namedtuple

from . import runtime
from .refusals import Unavailable, choose

# Chips in x, y and z, and the cores of a chip. From v4 on, TensorFlow sees one core in each chip.
MESHES = {
    "v2-8": (2, 2, 1, 2),
    "v3-8": (2, 2, 1, 2),
    "v4-8": (2, 2, 1, 1),
    "v5e-8": (2, 4, 1, 1),
    "v6e-8": (2, 4, 1, 1),
}

MARK = "_tpu_replicate"  # the attribute by which TPUStrategy.run marks the program of one replica
PASSED_THROUGH = ("TPUReplicatedInput", "TPUReplicatedOutput")
BOOKKEEPING = ("TPUReplicateMetadata", "TPUCompilationResult")
OURS = ("_tpu", "_xla", "_pivot")  # beginnings of attributes that only a TPU's own passes read

DESCRIBED = ["v2-8"]  # the TPU that is described where none is named
WATCHED = deque(maxlen=16)  # the last programs, each with the strategy that traced it

Described = namedtuple("Described", "name device_type memory_limit_bytes incarnation")


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

    mesh = MESHES[choose("TPU", name, MESHES)]
    places = [list(reversed(place)) for place in itertools.product(*map(range, reversed(mesh)))]
    return tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=[places])


def strategy(name: str = "", computation=(1, 1, 1, 1), spmd: bool = False):
    """TPUStrategy on a described TPU; `computation` is the block of cores that one replica is spread over."""
    name = name or DESCRIBED[-1]
    described, assignment = topology(name), assignment_class()
    cores = math.prod(MESHES[name])
    placed = assignment.build(
        described,
        computation_shape=list(computation),
        num_replicas=cores // math.prod(computation),
    )
    made = strategy_class()(
        resolver_class()(runtime.devices(cores), described),
        experimental_device_assignment=assignment(described, placed.core_assignment),
        experimental_spmd_xla_partitioning=spmd,
    )
    # One handle for all copies of a variable is a TPU's; CPU devices have one for each.
    made._enable_packed_variable_in_eager_mode = False
    made.extended._enable_packed_variable_in_eager_mode = False
    made.described, made.parts, made.spmd = name, math.prod(computation), spmd
    return made


@contextlib.contextmanager
def watched(name: str):
    """While it lasts, a TPU is described as this one unless a program says otherwise; gives what is traced for it."""
    DESCRIBED.append(choose("TPU", name, MESHES))
    WATCHED.clear()
    try:
        yield WATCHED
    finally:
        DESCRIBED.pop()


# The program of one replica, written out for all of them


def emulate(traced):
    """Puts the traced program of every replica into the graph under way; returns what `run` would return."""
    import tensorflow as tf

    program = Program(traced.graph)
    program.refuse_hidden_exchange()
    program.refuse_divided_variables()
    outer = tf.compat.v1.get_default_graph()
    given = {inside.name: outer.capture(outside) for outside, inside in traced.graph.captures}
    wanted = [whole_name(program.source(tensor, None)) for tensor in traced.graph.outputs]
    results = tf.graph_util.import_graph_def(program.written_out(), given, wanted)
    left = iter(results)
    # A graph has no output for a None.
    leaves = tf.nest.flatten(traced.structured_outputs, expand_composites=True)
    filled = [None if leaf is None else next(left) for leaf in leaves]
    return tf.nest.pack_sequence_as(traced.structured_outputs, filled, expand_composites=True)


class Program:
    """A graph with one marked program, and how it reads with a copy of that program for each replica."""

    def __init__(self, graph, writers=None):
        import tensorflow as tf

        self.writers = writers or WRITERS
        self.operations = graph.get_operations()
        self.inside = {each.name for each in self.operations if attribute(each, MARK)}
        self.outside = {each.name for each in self.operations} - self.inside
        metadata = [each for each in self.operations if each.type == "TPUReplicateMetadata"]
        self.replicas = range(metadata[0].get_attr("num_replicas"))
        self.whole = graph.as_graph_def()
        self.nodes = {node.name: node for node in self.whole.node}
        self.made = tf.compat.v1.GraphDef(versions=self.whole.versions, library=self.whole.library)

    def refuse_hidden_exchange(self):
        """What stands in a branch or a loop is another graph, and replicas cannot meet in the middle of one."""
        hidden = {node.op for each in self.whole.library.function for node in each.node_def}
        if hidden & {"CrossReplicaSum", "AllToAll"}:
            raise Unavailable(
                "The step was traced for a TPU, but its replicas exchange values inside a condition, a loop or "
                "another tf.function, which cannot be written out without a TPU."
            )

    def refuse_divided_variables(self):
        if any(each.type.startswith("TPUPartitioned") for each in self.operations):
            raise Unavailable(
                "The step was traced for a TPU, but its variables have a copy on every logical device (SPMD), which "
                "cannot be emulated on CPU devices."
            )

    def written_out(self):
        for operation in self.operations:
            if operation.type not in PASSED_THROUGH:
                for replica in self.replicas if operation.name in self.inside else [None]:
                    self.copy(operation, replica)
        return self.made

    def of_one_replica(self):
        """The program of the first replica alone, for a compiler, and the names of its results."""
        inside = [each for each in self.operations if each.name in self.inside]
        read, left = {}, [(each, 0) for each in inside]
        while left:
            operation, replica = left.pop()
            found = [self.origin(tensor, replica)[0].op for tensor in operation.inputs]
            fresh = {
                each.name: each for each in found if each.name not in self.inside | read.keys()
            }
            read |= fresh
            left += [(each, None) for each in fresh.values()]
        read = {name: each for name, each in read.items() if each.type != "Placeholder"}
        self.outside = read.keys()
        for operation in self.operations:
            if operation.name in self.inside | read.keys():
                self.copy(operation, 0 if operation.name in self.inside else None)
        ends = [each.inputs[0] for each in self.operations if each.type == "TPUReplicatedOutput"]
        return self.made, [whole_name(self.source(tensor, 0)) for tensor in ends]

    def origin(self, tensor, replica):
        """What is read in truth, past the marks that bundle one value of each replica, and in which replica it is."""
        operation = tensor.op
        if operation.type == "TPUReplicatedInput":
            return self.origin(operation.inputs[replica], replica)
        if operation.type == "TPUReplicatedOutput":
            return self.origin(operation.inputs[0], tensor.value_index)
        if operation.type.startswith("TPUPartitionedInput"):
            return self.origin(operation.inputs[0], replica)
        return tensor, replica if operation.name in self.inside else None

    def source(self, tensor, replica) -> str:
        """The name of what one replica reads, or, for None, of what is read outside the program."""
        tensor, replica = self.origin(tensor, replica)
        name = named(tensor.op, replica)
        return f"{name}:{tensor.value_index}" if tensor.value_index else name

    def copy(self, operation, replica):
        node = self.made.node.add()
        node.CopyFrom(self.nodes[operation.name])
        node.name, node.device = named(operation, replica), ""
        del node.input[:]
        for name in [name for name in node.attr if name.startswith(OURS) or name == "_class"]:
            del node.attr[name]
        self.writers.get(operation.type, write_plain)(self, node, operation, replica)
        node.input.extend(self.conditions(operation, replica))

    def conditions(self, operation, replica) -> list[str]:
        found = []
        for each in operation.control_inputs:
            if each.name in self.inside:
                among = self.replicas if replica is None else [replica]
                found += [f"^{named(each, one)}" for one in among]
            elif each.name in self.outside and each.type not in PASSED_THROUGH:
                found.append(f"^{each.name}")
        return found

    def groups(self, operation) -> list[list[int]]:
        """Which replicas exchange values with each other."""
        import tensorflow as tf

        groups = tf.get_static_value(operation.inputs[1])
        return groups.tolist() if groups is not None and groups.size else [list(self.replicas)]

    def group(self, operation, replica) -> list[int]:
        return next(group for group in self.groups(operation) if replica in group)

    def constant(self, name: str, value: int) -> str:
        import tensorflow as tf

        node = self.made.node.add(name=name, op="Const")
        node.attr["dtype"].type = tf.int32.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
        return name


def attribute(operation, name: str):
    try:
        return operation.get_attr(name)
    except ValueError:
        return None


def named(operation, replica) -> str:
    return operation.name if replica is None else f"replica_{replica}/{operation.name}"


def whole_name(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def write_plain(program, node, operation, replica):
    node.input.extend(program.source(tensor, replica) for tensor in operation.inputs)


def write_nothing(program, node, operation, replica):
    node.op = "NoOp"
    node.attr.clear()


def write_passing(program, node, operation, replica):
    """A mark for the compiler; on one device its value passes through."""
    kind = operation.outputs[0].dtype.as_datatype_enum
    node.op = "Identity"
    node.attr.clear()
    node.attr["T"].type = kind
    write_plain(program, node, operation, replica)


def write_sum(program, node, operation, replica):
    group = program.group(operation, replica)
    node.op = "AddN"
    node.attr["N"].i = len(group)
    node.input.extend(program.source(operation.inputs[0], one) for one in group)


def write_exchange(program, node, operation, replica):
    """Every replica cuts its value into pieces and gets its own piece of each other's."""
    group = program.group(operation, replica)
    cut(program, node, operation, replica)
    mine = group.index(replica)
    join(program, node, operation, [f"{named(operation, one)}/pieces:{mine}" for one in group])


def cut(program, node, operation, replica):
    pieces = program.made.node.add(name=f"{node.name}/pieces", op="Split")
    axis = program.constant(f"{node.name}/from", operation.get_attr("split_dimension"))
    pieces.input.extend([axis, program.source(operation.inputs[0], replica)])
    pieces.attr["T"].type = operation.outputs[0].dtype.as_datatype_enum
    pieces.attr["num_split"].i = operation.get_attr("split_count")


def join(program, node, operation, pieces):
    node.op = "ConcatV2"
    node.attr.clear()
    node.attr["T"].type = operation.outputs[0].dtype.as_datatype_enum
    node.attr["N"].i, node.attr["Tidx"].type = len(pieces), 3  # int32
    node.input.extend(name.removesuffix(":0") for name in pieces)
    node.input.append(program.constant(f"{node.name}/to", operation.get_attr("concat_dimension")))


def write_cut(program, node, operation, replica):
    """Batches of several sizes are padded to one; a TPU knows what is padding, here it is cut off."""
    whole, axis, size = (program.source(tensor, replica) for tensor in operation.inputs)
    first, step = program.constant(f"{node.name}/from", 0), program.constant(f"{node.name}/by", 1)
    kept = program.made.node.add(name=f"{node.name}/kept", op="Range")
    kept.input.extend([first, size, step])
    node.op = "GatherV2"
    node.attr.clear()
    node.attr["Tparams"].type = operation.outputs[0].dtype.as_datatype_enum
    for each, name in [(kept, "Tidx"), (node, "Tindices"), (node, "Taxis")]:
        each.attr[name].type = 3  # int32
    node.input.extend([whole, kept.name, axis])


WRITERS = {
    "CrossReplicaSum": write_sum,
    "AllToAll": write_exchange,
    "XlaSetDynamicDimensionSize": write_cut,
    "XlaSharding": write_passing,
    **dict.fromkeys(BOOKKEEPING, write_nothing),
}
