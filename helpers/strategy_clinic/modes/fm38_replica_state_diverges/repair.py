"""Repairs fm38: statistics of a normalization are taken over all replicas, and a variable's values are averaged."""

import ast

from ...examiner.blame import keyword, name_of
from ...examiner.repair import Source, Ways, repairs_statement
from ...examiner.repair_sums import CONTEXT

# By what makes a variable.
OF_LAYER = '"mean"'
ASSIGNS = "assign", "assign_add", "assign_sub"
STATISTICS = "moments", "reduce_mean", "reduce_variance", "reduce_std"
REPLICA = f"replica = {CONTEXT}"  # None where a model is built
WHOLE = "replica.all_gather({0}, axis=0) if replica else {0}"
MEAN = {"Variable": "tf.VariableAggregation.MEAN", "add_weight": OF_LAYER, "add_variable": OF_LAYER}


@repairs_statement("fm38", keeps_training=True)
def synchronize(source: Source, statement: ast.stmt) -> Ways:
    layers = normalizations(source, statement) or normalizations(source, source.tree)
    open_layers = [call for call in layers if keyword(call, "synchronized") is None]
    if open_layers:
        yield [source.set_argument(call, "synchronized", "True") for call in open_layers]
    chosen = [word.value for call in layers if (word := switched(call))]
    if chosen:
        yield [source.replace(value, "True") for value in chosen]
    for name, mean in MEAN.items():
        variables = source.calls(name, statement)
        if len(variables) == 1 and is_plain(variables[0]):
            yield [source.set_argument(variables[0], "aggregation", mean)]
            every = [
                each for each in source.calls(name, source.class_of(statement)) if is_plain(each)
            ]
            yield [source.set_argument(each, "aggregation", mean) for each in every]
    yield from of_whole_batch(source, statement)


def of_whole_batch(source: Source, statement: ast.stmt) -> Ways:
    """Yields statistics of the examples of all replicas, in the functions of the class that assign its variables."""
    own = source.class_of(statement)
    for function in source.of(ast.FunctionDef, own) if own else ():
        if not source.calls(ASSIGNS, function):
            continue
        taken = [call for call in source.calls(STATISTICS, function) if call.args]
        lines = {
            each.lineno: each for call in taken if (each := source.simple_statement(call.lineno))
        }
        if lines:
            first = lines[min(lines)]
            given = [call.args[0] for call in taken if isinstance(call.args[0], ast.Name)]
            asked = source.insert_before(first, REPLICA)
            yield [
                asked,
                *(source.replace(each, WHOLE.format(source.code(each))) for each in given),
            ]


def normalizations(source: Source, node: ast.AST) -> list[ast.Call]:
    """Returns the calls that make a normalization, or that keep arguments for one."""
    kept = [
        call
        for call in source.calls("partial", node)
        if call.args and name_of(call.args[0]) == "BatchNormalization"
    ]
    names = ["BatchNormalization", *source.aliases("BatchNormalization")]
    return [*source.calls(names, node), *kept]


def is_plain(variable: ast.Call) -> bool:
    return not {word.arg for word in variable.keywords} & {"aggregation", "synchronization"}


def switched(layer: ast.Call) -> ast.keyword | None:
    """Returns the argument by which the program chooses whether a layer takes the statistics of all replicas."""
    chosen = [word for word in layer.keywords if word.arg == "synchronized"]
    return next((word for word in chosen if ast.unparse(word.value) != "True"), None)
