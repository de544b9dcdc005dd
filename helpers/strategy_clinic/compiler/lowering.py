"""Lowers a step that TPUStrategy has traced to the program of one replica, in which all replicas exchange values.

TensorFlow lowers for the CPU it runs on. What only a TPU's lowering knows, sums and exchanges between replicas, is passed
through as custom calls, which are then replaced by the compiler's own instructions.
"""

import json
from typing import Any

from ..base import tf_internals
from ..base.errors import Unavailable
from ..setups.tpu_graph import WRITERS, Program, cut, join, write_plain

SUM, EXCHANGE = "clinic_sum", "clinic_exchange"
CALL_FIELDS = (
    "custom_call_target",
    "backend_config",
    "custom_call_api_version",
    "constrain_layout",
    "operand_shapes_with_layout",
)


def lowered(traced: Any) -> bytes:
    """Returns a traced step as a serialized HloModuleProto; raises Unavailable if its exchange cannot be lowered."""
    import tensorflow as tf

    whole = Program(traced.graph, WRITERS | LOWERING_WRITERS)
    whole.refuse_hidden_exchange()
    definition, results = whole.of_one_replica()
    needed = {name.split(":")[0].lstrip("^") for node in definition.node for name in node.input}
    captured = {
        inside.op.name: value_or_spec(outside)
        for outside, inside in traced.graph.captures
        if inside.op.name in needed
    }
    data = {name: spec for name, spec in captured.items() if isinstance(spec, tf.TensorSpec)}

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def step(*values: Any) -> list[Any]:
        graph = tf.compat.v1.get_default_graph()
        given = captured | dict(zip(data, values))
        inputs = {name: graph.capture(value) for name, value in given.items()}
        outputs = tf.graph_util.import_graph_def(definition, inputs, results, name="")
        return [tf.identity(output) for output in outputs]

    lower = step.experimental_get_compiler_ir(*data.values())
    return with_instructions(lower(stage="hlo_serialized"))


def value_or_spec(tensor: Any) -> Any:
    """Returns a captured variable or constant itself, and of data its shape and type."""
    import tensorflow as tf

    if not hasattr(tensor, "graph"):
        return tensor
    outer = {id(inside): outside for outside, inside in getattr(tensor.graph, "captures", [])}
    if id(tensor) in outer:
        return value_or_spec(outer[id(tensor)])
    return tf.TensorSpec(tensor.shape, tensor.dtype)


# Custom calls, which TensorFlow lowers without knowing them


def write_call(
    program: Program, node: Any, operation: Any, target: str, inputs: list[str], shape: Any
) -> None:
    """Makes a node a custom call, whose configuration says which replicas exchange values."""
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


def write_sum_call(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    summed = operation.inputs[0]
    write_call(program, node, operation, SUM, [program.source(summed, replica)], summed.shape)


def write_exchange_call(program: Program, node: Any, operation: Any, replica: int | None) -> None:
    count, axis = operation.get_attr("split_count"), operation.get_attr("split_dimension")
    cut(program, node, operation, replica)
    shape = operation.inputs[0].shape.as_list()
    shape[axis] = shape[axis] and shape[axis] // count
    met, pieces = program.result.node.add(name=f"{node.name}/met"), f"{node.name}/pieces"
    parts = [f"{pieces}:{i}".removesuffix(":0") for i in range(count)]
    write_call(program, met, operation, EXCHANGE, parts, operation.inputs[0].shape.__class__(shape))
    join(program, node, operation, [f"{met.name}:{i}" for i in range(count)])


LOWERING_WRITERS = {
    "CrossReplicaSum": write_sum_call,
    "AllToAll": write_exchange_call,
    "XlaSetDynamicDimensionSize": write_plain,
    "XlaSharding": write_plain,
}


# The compiler's own instructions


def with_instructions(program: bytes) -> bytes:
    """Replaces the custom calls by all-reduce and all-to-all instructions."""
    module = tf_internals.hlo_pb2.HloModuleProto.FromString(program)
    computations = list(module.computations)
    instructions = [each for part in computations for each in part.instructions]
    calls = [each for each in instructions if each.custom_call_target in (SUM, EXCHANGE)]
    number = max(computation.id for computation in computations)
    adders: dict[int, Any] = {}
    for call in calls:
        call.opcode = "all-reduce" if call.custom_call_target == SUM else "all-to-all"
        if call.opcode == "all-reduce":
            kind = call.shape.element_type
            if kind not in adders:
                adders[kind] = adder(number + len(adders) + 1, kind)
            call.called_computation_ids.append(adders[kind].id)
        for group in json.loads(call.backend_config):
            call.replica_groups.add(replica_ids=group)
        for name in CALL_FIELDS:
            call.ClearField(name)
    del module.computations[:]
    module.computations.extend([*adders.values(), *computations])  # what is called comes first
    serialized: bytes = module.SerializeToString()
    return serialized


def adder(number: int, kind: int) -> Any:
    """Returns the computation of an all-reduce: the sum of two numbers of one kind."""
    made = tf_internals.hlo_pb2.HloComputationProto(name=f"sum_{kind}", id=number)
    ids = [number << 32 | i for i in (1, 2, 3)]
    for i in (0, 1):
        parameter = made.instructions.add(name=f"sum_{kind}_{i}", opcode="parameter", id=ids[i])
        parameter.parameter_number, parameter.shape.element_type = i, kind
        parameter.shape.layout.SetInParent()
        made.program_shape.parameters.add().CopyFrom(parameter.shape)
        made.program_shape.parameter_names.append(f"p{i}")
    total = made.instructions.add(name=f"sum_{kind}_of", opcode="add", id=ids[2])
    total.operand_ids.extend(ids[:2])
    total.shape.CopyFrom(made.instructions[0].shape)
    made.program_shape.result.CopyFrom(total.shape)
    made.root_id = total.id
    return made
