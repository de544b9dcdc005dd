"""The graph of a traced TPU program, written out for all of its replicas."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ..base.errors import Unavailable
from ..base.tf_internals import Renamed

MARK = "_tpu_replicate"  # the attribute by which TPUStrategy.run marks the program of one replica
PASSED_THROUGH = ("TPUReplicatedInput", "TPUReplicatedOutput")
BOOKKEEPING = ("TPUReplicateMetadata", "TPUCompilationResult")
TPU_ONLY = ("_tpu", "_xla", "_pivot")  # how attributes begin that only TensorFlow's TPU passes read
# The operations that only read a variable. Any other may write to it, such as a call of a function.
READERS = (
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VariableShape",
    "VarIsInitializedOp",
)
COPIES = itertools.count()  # numbers the copies of variables, whose names are those of the process


def emulate(traced: Any) -> Any:
    """Puts the traced program of every replica into the current graph; returns what `run` would return."""
    import tensorflow as tf

    program = Program(traced.graph)
    program.refuse_hidden_exchange()
    program.refuse_divided_variables()
    program.keep_writes_of_first_replica(captured_variables(traced))
    outer = tf.compat.v1.get_default_graph()
    captures = {inside.name: outer.capture(outside) for outside, inside in traced.graph.captures}
    names = [whole_name(program.source(tensor, None)) for tensor in traced.graph.outputs]
    results = iter(tf.graph_util.import_graph_def(program.written_out(), captures, names))
    # A graph has no output for a None.
    leaves = tf.nest.flatten(traced.structured_outputs, expand_composites=True)
    values = [None if leaf is None else next(results) for leaf in leaves]
    return tf.nest.pack_sequence_as(traced.structured_outputs, values, expand_composites=True)


def captured_variables(traced: Any) -> dict[str, Any]:
    """Returns the variables that are not the strategy's, by the names of the placeholders of their handles."""
    handles = {id(outside): inside.op.name for outside, inside in traced.graph.captures}
    plain = [each for each in traced.variables if id(each.handle) in handles]
    return {handles[id(each.handle)]: each for each in plain}


class Program:
    """A graph with the marked program of one replica, which is copied into `result` for other replicas.

    A replica is a number inside of the marked program, and None outside of it.
    """

    def __init__(self, graph: Any, writers: "dict[str, Writer] | None" = None) -> None:
        import tensorflow as tf

        self.writers = writers or WRITERS
        self.operations: list[Any] = graph.get_operations()
        self.inside = {each.name for each in self.operations if attribute(each, MARK)}
        self.outside = {each.name for each in self.operations} - self.inside
        metadata = [each for each in self.operations if each.type == "TPUReplicateMetadata"]
        require_marks(metadata, self.inside)
        self.replicas = range(metadata[0].get_attr("num_replicas"))
        self.shared: set[str] = set()  # the variables outside that the program writes to
        self.definition = graph.as_graph_def()
        self.nodes = {node.name: node for node in self.definition.node}
        self.result = tf.compat.v1.GraphDef(
            versions=self.definition.versions, library=self.definition.library
        )

    def refuse_hidden_exchange(self) -> None:
        """Raises Unavailable if replicas exchange values in a branch or a loop, whose graphs are not written out."""
        hidden = {node.op for each in self.definition.library.function for node in each.node_def}
        if hidden & {"CrossReplicaSum", "AllToAll"}:
            raise Unavailable(
                "The step was traced for a TPU, but its replicas exchange values inside a condition, a loop or "
                "another tf.function, which cannot be written out without a TPU."
            )

    def refuse_divided_variables(self) -> None:
        if any(each.type.startswith("TPUPartitioned") for each in self.operations):
            raise Unavailable(
                "The step was traced for a TPU, but its variables have a copy on every logical device (SPMD), which "
                "cannot be emulated on CPU devices."
            )

    def keep_writes_of_first_replica(self, variables: dict[str, Any]) -> None:
        """Gives every further replica a copy of each variable outside of the strategy that the program writes to.

        TensorFlow's passes for TPUs hand such a variable to all replicas by its value and write it once, with the value
        of the first replica: BuildExecuteNodes in distributed_tpu_rewrite_pass.cc, and the newer
        hoist_replicate_invariant_resource_writes.cc.
        """
        writers = [
            each
            for each in self.operations
            if each.name in self.inside and each.type not in READERS
        ]
        touched = {tensor.op.name for each in writers for tensor in each.inputs}
        self.shared = {name for name in variables if name in touched}
        for name in sorted(self.shared):
            self.copy_variable(name, variables[name])

    def copy_variable(self, name: str, variable: Any) -> None:
        before = self.result.node.add(name=f"{name}/before", op="ReadVariableOp", input=[name])
        before.attr["dtype"].type = variable.dtype.as_datatype_enum
        for replica in self.replicas[1:]:
            handle = self.result.node.add(name=f"replica_{replica}/{name}", op="VarHandleOp")
            handle.attr["dtype"].type = variable.dtype.as_datatype_enum
            handle.attr["shape"].shape.CopyFrom(variable.shape.as_proto())
            handle.attr["shared_name"].s = f"copy_of_variable_{next(COPIES)}".encode()
            values = [handle.name, before.name]
            filled = self.result.node.add(
                name=f"{handle.name}/filled", op="AssignVariableOp", input=values
            )
            filled.attr["dtype"].type = variable.dtype.as_datatype_enum

    def written_out(self) -> Any:
        """Returns the graph with a copy of the program for each replica."""
        for operation in self.operations:
            if operation.type not in PASSED_THROUGH:
                for replica in self.replicas if operation.name in self.inside else [None]:
                    self.copy(operation, replica)
        return self.result

    def of_one_replica(self) -> tuple[Any, list[str]]:
        """Returns the program of the first replica alone, for a compiler, and the names of its results."""
        # The types of all operations outside that the program reads, directly or not, by their names.
        types: dict[str, str] = {}
        unread: list[tuple[Any, int | None]] = [
            (operation, 0) for operation in self.operations if operation.name in self.inside
        ]
        while unread:
            operation, replica = unread.pop()
            for origin in [self.origin(tensor, replica)[0].op for tensor in operation.inputs]:
                if origin.name not in self.inside and origin.name not in types:
                    types[origin.name] = origin.type
                    unread.append((origin, None))
        self.outside = {name for name, kind in types.items() if kind != "Placeholder"}
        for operation in self.operations:
            if operation.name in self.inside | self.outside:
                self.copy(operation, 0 if operation.name in self.inside else None)
        ends = [each.inputs[0] for each in self.operations if each.type == "TPUReplicatedOutput"]
        return self.result, [whole_name(self.source(tensor, 0)) for tensor in ends]

    def origin(self, tensor: Any, replica: int | None) -> tuple[Any, int | None]:
        """Returns the tensor that a value comes from, and its replica, past the operations that bundle replicas' values."""
        operation = tensor.op
        if operation.type == "TPUReplicatedInput":
            return self.origin(operation.inputs[replica], replica)
        if operation.type == "TPUReplicatedOutput":
            return self.origin(operation.inputs[0], tensor.value_index)
        if operation.type.startswith("TPUPartitionedInput"):
            return self.origin(operation.inputs[0], replica)
        if operation.name in self.shared and replica:
            return tensor, replica
        return tensor, replica if operation.name in self.inside else None

    def source(self, tensor: Any, replica: int | None) -> str:
        """Returns the name of what a replica reads."""
        tensor, replica = self.origin(tensor, replica)
        name = name_in(tensor.op, replica)
        return f"{name}:{tensor.value_index}" if tensor.value_index else name

    def copy(self, operation: Any, replica: int | None) -> None:
        """Writes an operation as a replica has it."""
        node = self.result.node.add()
        node.CopyFrom(self.nodes[operation.name])
        node.name, node.device = name_in(operation, replica), ""
        del node.input[:]
        for name in [name for name in node.attr if name.startswith(TPU_ONLY) or name == "_class"]:
            del node.attr[name]
        self.writers.get(operation.type, write_plain)(self, node, operation, replica)
        node.input.extend(self.conditions(operation, replica))

    def conditions(self, operation: Any, replica: int | None) -> list[str]:
        """Returns the control inputs of an operation in a replica; outside, on those of every replica."""
        names = []
        for variable in {each.op.name for each in operation.inputs} & self.shared:
            if replica is not None:
                ready = f"replica_{replica}/{variable}/filled" if replica else f"{variable}/before"
                names.append(f"^{ready}")
        for control in operation.control_inputs:
            if control.name in self.inside:
                among = self.replicas if replica is None else [replica]
                names += [f"^{name_in(control, each)}" for each in among]
            elif control.name in self.outside and control.type not in PASSED_THROUGH:
                names.append(f"^{control.name}")
        return names

    def groups(self, operation: Any) -> list[list[int]]:
        """Returns which replicas exchange values with each other."""
        import tensorflow as tf

        groups = tf.get_static_value(operation.inputs[1])
        return groups.tolist() if groups is not None and groups.size else [list(self.replicas)]

    def group(self, operation: Any, replica: int | None) -> list[Any]:
        return next(group for group in self.groups(operation) if replica in group)

    def constant(self, name: str, value: int) -> str:
        import tensorflow as tf

        node = self.result.node.add(name=name, op="Const")
        node.attr["dtype"].type = tf.int32.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
        return name


Writer = Callable[[Program, Any, Any, int | None], None]


def require_marks(metadata: Iterable[Any], inside: Iterable[str]) -> None:
    """Raises Renamed without the marks by which a program is found, which would be silently left out otherwise."""
    for name, marks in (("TPUReplicateMetadata", metadata), (MARK, inside)):
        if not marks:
            raise Renamed(
                f"TPUStrategy traces no {name!r} any more; see helpers/strategy_clinic/base/tf_internals.py"
            )


def attribute(operation: Any, name: str) -> Any:
    try:
        return operation.get_attr(name)
    except ValueError:
        return None


def name_in(operation: Any, replica: int | None) -> str:
    return operation.name if replica is None else f"replica_{replica}/{operation.name}"


def whole_name(name: str) -> str:
    return name if ":" in name else f"{name}:0"


# Writers: each gives a node the inputs and attributes that an operation has in a replica


def write_plain(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    node.input.extend(program.source(tensor, replica) for tensor in operation.inputs)


def make(node: Any, kind: str, operation: Any, parameter: str = "T") -> None:
    """Makes a node of another kind, whose type parameter is the type of the operation's value."""
    node.op = kind
    node.attr.clear()
    node.attr[parameter].type = operation.outputs[0].dtype.as_datatype_enum


def write_nothing(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    node.op = "NoOp"
    node.attr.clear()


def write_passing(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    """Writes a mark for the compiler as an identity, which it is on one device."""
    make(node, "Identity", operation)
    node.input.append(program.source(operation.inputs[0], replica))


def write_sum(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    group = program.group(operation, replica)
    node.op = "AddN"
    node.attr["N"].i = len(group)
    node.input.extend(program.source(operation.inputs[0], one) for one in group)


def write_exchange(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    """Splits the value of each replica, and joins the pieces of all that are for this replica."""
    group = program.group(operation, replica)
    if len(group) == 1:
        return write_passing(program, node, operation, replica)
    cut(program, node, operation, replica)
    mine = group.index(replica)
    join(program, node, operation, [f"{name_in(operation, one)}/pieces:{mine}" for one in group])


def cut(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    pieces = program.result.node.add(name=f"{node.name}/pieces")
    make(pieces, "Split", operation)
    axis = program.constant(f"{node.name}/from", operation.get_attr("split_dimension"))
    pieces.input.extend([axis, program.source(operation.inputs[0], replica)])
    pieces.attr["num_split"].i = operation.get_attr("split_count")


def join(program: Program, node: Any, operation: Any, pieces: list[str]) -> None:
    make(node, "ConcatV2", operation)
    node.attr["N"].i, node.attr["Tidx"].type = len(pieces), 3  # int32
    node.input.extend(name.removesuffix(":0") for name in pieces)
    node.input.append(program.constant(f"{node.name}/to", operation.get_attr("concat_dimension")))


def write_cut(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    """Cuts off padding: TPUStrategy pads batches to one size, and a TPU knows which part is padding."""
    value, axis, size = (program.source(tensor, replica) for tensor in operation.inputs)
    first, step = program.constant(f"{node.name}/from", 0), program.constant(f"{node.name}/by", 1)
    indices = program.result.node.add(name=f"{node.name}/kept", op="Range")
    indices.input.extend([first, size, step])
    make(node, "GatherV2", operation, "Tparams")
    for typed, name in [(indices, "Tidx"), (node, "Tindices"), (node, "Taxis")]:
        typed.attr[name].type = 3  # int32
    node.input.extend([value, indices.name, axis])


WRITERS: dict[str, Writer] = {
    "CrossReplicaSum": write_sum,
    "AllToAll": write_exchange,
    "XlaSetDynamicDimensionSize": write_cut,
    "XlaSharding": write_passing,
    **dict.fromkeys(BOOKKEEPING, write_nothing),
}
