"""A step that TPUStrategy has traced, as the program that TensorFlow hands to a compiler: one replica, in which all meet.

TensorFlow lowers for the CPU it runs on. What only a TPU's lowering knows, sums and exchanges between replicas, is passed
through as calls, and the compiler's own instructions are put in their place.
"""

import json

from ..base import tf_internals
from ..base.errors import Unavailable
from ..setups.tpu_graph import WRITERS, Program, cut, join, write_plain

SUM, EXCHANGE = "clinic_sum", "clinic_exchange"
OF_A_CALL = (
    "custom_call_target",
    "backend_config",
    "custom_call_api_version",
    "constrain_layout",
    "operand_shapes_with_layout",
)


def lowered(traced) -> bytes:
    import tensorflow as tf

    whole = Program(traced.graph, WRITERS | LOWERING_WRITERS)
    whole.refuse_hidden_exchange()
    definition, results = whole.of_one_replica()
    needed = {name.split(":")[0].lstrip("^") for node in definition.node for name in node.input}
    reads = [
        (inside.name, known(outside))
        for outside, inside in traced.graph.captures
        if inside.op.name in needed
    ]
    data = [(name, each) for name, each in reads if isinstance(each, tf.TensorSpec)]

    @tf.function(jit_compile=True, autograph=False)
    def step(*values):
        given = dict(reads) | {name: value for (name, _), value in zip(data, values)}
        graph = tf.compat.v1.get_default_graph()
        captured = {name: graph.capture(each) for name, each in given.items()}
        found = tf.graph_util.import_graph_def(definition, captured, results, name="")
        return [tf.identity(each) for each in found]

    lower = step.experimental_get_compiler_ir(*[spec for _, spec in data])
    return with_exchange(lower(stage="hlo_serialized"))


def known(tensor):
    """What is known of a captured tensor: all of it, for a variable or a constant; of data, its shape and type."""
    import tensorflow as tf

    if not hasattr(tensor, "graph"):
        return tensor
    outer = {id(inside): outside for outside, inside in getattr(tensor.graph, "captures", [])}
    if id(tensor) in outer:
        return known(outer[id(tensor)])
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def call(program, node, operation, target: str, inputs: list[str], shape):
    """A call that TensorFlow lowers without knowing it; it says which replicas meet there."""
    if not shape.is_fully_defined():
        raise Unavailable(
            f"The replicas exchange values of shape {shape}, which is not known before it runs."
        )
    kind = operation.outputs[0].dtype.as_datatype_enum
    node.op = "XlaCustomCallV2"
    node.attr.clear()
    node.input.extend(inputs)
    node.attr["call_target_name"].s = target.encode()
    node.attr["backend_config"].s = json.dumps(program.groups(operation)).encode()
    node.attr["has_side_effect"].b = False
    for side in ("operand_dtypes", "result_dtypes"):
        node.attr[side].list.type.extend([kind] * len(inputs))
    node.attr["result_shapes"].list.shape.extend([shape.as_proto()] * len(inputs))


def write_sum_call(program, node, operation, replica):
    summed = operation.inputs[0]
    call(program, node, operation, SUM, [program.source(summed, replica)], summed.shape)


def write_exchange_call(program, node, operation, replica):
    count, axis = operation.get_attr("split_count"), operation.get_attr("split_dimension")
    cut(program, node, operation, replica)
    shape = operation.inputs[0].shape.as_list()
    shape[axis] = shape[axis] and shape[axis] // count
    met, pieces = program.result.node.add(name=f"{node.name}/met"), f"{node.name}/pieces"
    parts = [f"{pieces}:{i}".removesuffix(":0") for i in range(count)]
    call(program, met, operation, EXCHANGE, parts, operation.inputs[0].shape.__class__(shape))
    join(program, node, operation, [f"{met.name}:{i}" for i in range(count)])


LOWERING_WRITERS = {
    "CrossReplicaSum": write_sum_call,
    "AllToAll": write_exchange_call,
    "XlaSetDynamicDimensionSize": write_plain,
    "XlaSharding": write_plain,
}


def with_exchange(program: bytes) -> bytes:
    """Puts the compiler's own instructions for meeting in the place of those calls."""
    hlo_pb2 = tf_internals.hlo_pb2
    module = hlo_pb2.HloModuleProto.FromString(program)
    calls = [
        each
        for computation in module.computations
        for each in computation.instructions
        if each.custom_call_target in (SUM, EXCHANGE)
    ]
    first = max(computation.id for computation in module.computations) + 1
    kinds = sorted({each.shape.element_type for each in calls if each.custom_call_target == SUM})
    adders = {kind: adder(first + i, kind) for i, kind in enumerate(kinds)}
    for each in calls:
        for group in json.loads(each.backend_config):
            each.replica_groups.add(replica_ids=group)
        each.opcode = "all-reduce" if each.custom_call_target == SUM else "all-to-all"
        if each.opcode == "all-reduce":
            each.called_computation_ids.append(adders[each.shape.element_type].id)
        for name in OF_A_CALL:
            each.ClearField(name)
    rest = list(module.computations)
    del module.computations[:]
    module.computations.extend([*adders.values(), *rest])  # what is called stands before its caller
    return module.SerializeToString()


def adder(number: int, kind: int):
    """The computation that an all-reduce is made of: the sum of two numbers of one kind."""
    hlo_pb2 = tf_internals.hlo_pb2
    made = hlo_pb2.HloComputationProto(name=f"sum_{kind}", id=number)
    ids = [number << 32 | i for i in (1, 2, 3)]
    for i in (0, 1):
        one = made.instructions.add(name=f"sum_{kind}_{i}", opcode="parameter", id=ids[i])
        one.parameter_number, one.shape.element_type = i, kind
        one.shape.layout.SetInParent()
        made.program_shape.parameters.add().CopyFrom(one.shape)
        made.program_shape.parameter_names.append(f"p{i}")
    total = made.instructions.add(name=f"sum_{kind}_of", opcode="add", id=ids[2])
    total.operand_ids.extend(ids[:2])
    total.shape.CopyFrom(made.instructions[0].shape)
    made.program_shape.result.CopyFrom(total.shape)
    made.root_id = total.id
    return made
