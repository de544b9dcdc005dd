"""A traced TPU program, written out for all of its replicas."""

from ..base.errors import Unavailable
from ..base.tf_internals import Renamed

MARK = "_tpu_replicate"  # the attribute by which TPUStrategy.run marks the program of one replica
PASSED_THROUGH = ("TPUReplicatedInput", "TPUReplicatedOutput")
BOOKKEEPING = ("TPUReplicateMetadata", "TPUCompilationResult")
OURS = ("_tpu", "_xla", "_pivot")  # beginnings of attributes that only a TPU's own passes read

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
        require_marks(metadata, self.inside)
        self.replicas = range(metadata[0].get_attr("num_replicas"))
        self.whole = graph.as_graph_def()
        self.nodes = {node.name: node for node in self.whole.node}
        self.made = tf.compat.v1.GraphDef(versions=self.whole.versions, library=self.whole.library)

    def refuse_hidden_exchange(self):
        """Refuses an exchange between replicas in a branch or a loop: that is a graph of its own, which cannot be written out."""
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
        """Where a value comes from, and in which replica: looks past the marks that bundle the replicas' values."""
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
        name = name_in(tensor.op, replica)
        return f"{name}:{tensor.value_index}" if tensor.value_index else name

    def copy(self, operation, replica):
        node = self.made.node.add()
        node.CopyFrom(self.nodes[operation.name])
        node.name, node.device = name_in(operation, replica), ""
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
                found += [f"^{name_in(each, one)}" for one in among]
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


def require_marks(metadata: list, inside: set):
    """Without them nothing would be written out for the replicas, and nothing would say so."""
    marks = {"TPUReplicateMetadata": metadata, MARK: inside}
    for name in [name for name, found in marks.items() if not found]:
        raise Renamed(
            f"TPUStrategy traces no {name!r} any more; see helpers/strategy_clinic/base/tf_internals.py"
        )


def attribute(operation, name: str):
    try:
        return operation.get_attr(name)
    except ValueError:
        return None


def name_in(operation, replica) -> str:
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
    node.input.append(program.source(operation.inputs[0], replica))


def write_sum(program, node, operation, replica):
    group = program.group(operation, replica)
    node.op = "AddN"
    node.attr["N"].i = len(group)
    node.input.extend(program.source(operation.inputs[0], one) for one in group)


def write_exchange(program, node, operation, replica):
    """Every replica cuts its value into pieces and gets its own piece of each other's; alone it keeps all."""
    group = program.group(operation, replica)
    if len(group) == 1:
        return write_passing(program, node, operation, replica)
    cut(program, node, operation, replica)
    mine = group.index(replica)
    join(program, node, operation, [f"{name_in(operation, one)}/pieces:{mine}" for one in group])


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
    """Cuts off padding. TPUStrategy pads batches to one size, and a TPU knows which part is padding."""
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
