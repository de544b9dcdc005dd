"""Repairs fm55: the sums by which a loss divides are those of all replicas, and so are the examples that it compares."""

import ast
import itertools

from ...examiner.blame import MEANS, SUMS, keyword, name_of
from ...examiner.edits import Edit, inserted
from ...examiner.repair import Source, Ways, names, repairs
from ...examiner.repair_sums import CONTEXT, GATHERED, REPLICAS, SUMMED, divided_by_all, quotients

# Keras 3 also calls a loss where no replica runs, to learn its shape.
SUMMED_IN_REPLICA = f"({SUMMED} if {CONTEXT} else {{0}})"
FROM_HERE = f"({{0}} + {CONTEXT}.replica_id_in_sync_group * {{1}})"  # if all parts are as large
COUNT = "num_replicas_in_sync"
STATISTICS = "reduce_variance", "reduce_std", "reduce_mean", "reduce_max", "reduce_min", "moments"
GATHERED_IN_REPLICA = f"({GATHERED} if {CONTEXT} else {{0}})"
WHOLE = (
    f"context = {CONTEXT}",
    "{0} = [context.all_gather(each, axis=0) if context else each for each in ({0},)]",
)


@repairs("fm55", keeps_training=True)
def with_all_replicas(source: Source, line: int) -> Ways:
    yield from sums_of_all_replicas(source, line)
    statement = source.simple_statement(line)
    for mean in source.over_all(MEANS, statement) if statement else ():
        yield [divided_by_all(source, mean)]
    yield from compared_with_all(source, line)
    yield from given_by_all(source, line)


def given_by_all(source: Source, line: int) -> Ways:
    """Yields statistics of all replicas' examples in the line, and what its function is given gathered from all of them."""
    statement = source.simple_statement(line)
    around = source.function(statement) if statement else None
    taken = [call for call in source.calls(STATISTICS, statement) if call.args]
    plain = [call.args[0] for call in taken if isinstance(call.args[0], ast.Name)]
    if plain:
        yield [
            source.replace(each, GATHERED_IN_REPLICA.format(source.code(each))) for each in plain
        ]
    if not isinstance(around, ast.FunctionDef):
        return
    joined = [name for call in source.calls("matmul", around) for name in names(call)]
    given = [
        each.arg for each in around.args.args if each.arg in {*joined, *names(around.body[-1])}
    ]
    if given and joined:
        lines = (each.format(", ".join(given)) for each in WHOLE)
        yield [source.insert_first(around, *lines)]


def compared_with_all(source: Source, line: int) -> Ways:
    """Yields the examples of all replicas in place of the second that a product compares, and the numbers that these have."""
    statement = source.simple_statement(line)
    function = source.function(statement) if statement else None
    products = source.calls("matmul", function) if function else []
    compared = [call.args[1] for call in products if keyword(call, "transpose_b") and call.args[1:]]
    numbers = [call for call in source.calls("range", function) if len(call.args) == 1]
    if len(compared) == 1 and numbers:
        whole = f"{CONTEXT}.all_gather({source.code(compared[0])}, axis=0)"
        shifts = [
            FROM_HERE.format(source.code(call), source.code(call.args[0])) for call in numbers
        ]
        yield [source.replace(compared[0], whole), *map(source.replace, numbers, shifts)]


def sums_of_all_replicas(source: Source, line: int) -> Ways:
    """Yields the divisor alone, without the number of replicas in its line, and all sums of the function.

    What is divided by an undivided sum is a replica's share of the loss already. A loss of `fit` that has the sums of all
    replicas is divided by their number, since Keras 3 adds it up.
    """
    fitted = losses_of_fit(source)
    forms = (SUMMED_IN_REPLICA,) if fitted else (SUMMED, SUMMED_IN_REPLICA)
    for summed, statement in itertools.product(forms, dividing(source, line)):
        divisors = divisors_in(source, statement)
        others: list[ast.expr] = [*source.over_all(SUMS, source.function(statement))]
        for sums in [divisors] if len(others) == len(divisors) else [divisors, others]:
            edits = [source.replace(each, summed.format(source.code(each))) for each in sums]
            if sums:
                yield [*edits, *without_count(source, statement)]
            if sums is others and fitted:
                yield [*edits, *(edit for loss in fitted for edit in divided(source, loss))]


def losses_of_fit(source: Source) -> list[ast.FunctionDef]:
    """Returns the functions that `compile` is given as a loss, or that classes of the program have of which it gets an object."""
    given = [keyword(call, "loss") for call in source.calls("compile")]
    named = {
        name_of(each.func if isinstance(each, ast.Call) else each) for each in filter(None, given)
    }
    found = [each for each in source.of(ast.FunctionDef) if each.name in named]
    classes = [each for each in source.of(ast.ClassDef) if each.name in named]
    return [
        *found,
        *(
            each
            for own in classes
            for each in source.of(ast.FunctionDef, own)
            if each.name == "call"
        ),
    ]


def divided(source: Source, loss: ast.FunctionDef) -> list[Edit]:
    """Returns the edits that divide what a function returns by the number of replicas."""
    edits = []
    for value in [each.value for each in source.of(ast.Return, loss) if each.value]:
        edits.append(inserted(source.start(value), "("))
        edits.append(inserted(source.end(value), f") / {REPLICAS}"))
    return edits


def dividing(source: Source, line: int) -> list[ast.stmt]:
    """Returns the statement of a line, and those below in its function that divide by what it computes."""
    statement = source.simple_statement(line)
    if statement is None:
        return []
    computed = {
        each.id for each in source.of(ast.Name, statement) if isinstance(each.ctx, ast.Store)
    }
    below = [
        source.statement(divisor.lineno)
        for _, divisor in quotients(source, source.function(statement))
        if isinstance(divisor, ast.Name) and divisor.id in computed and divisor.lineno > line
    ]
    return [statement, *filter(None, below)]


def divisors_in(source: Source, statement: ast.stmt) -> list[ast.expr]:
    """Returns the sums by which a statement divides, or else all of its sums, or names by which it divides."""
    divisors = [divisor for _, divisor in quotients(source, statement)]
    sums = source.over_all(SUMS, statement)
    below = [call for each in divisors for call in source.over_all(SUMS, each)]
    named = [each for each in divisors if isinstance(each, ast.Name)]
    return [*(below or sums or named)]


def without_count(source: Source, statement: ast.stmt) -> list[Edit]:
    """Returns the edits that take the number of replicas out of products and quotients."""
    edits = []
    for product in source.of(ast.BinOp, statement):
        is_product = isinstance(product.op, ast.Mult)
        if is_product and name_of(product.left) == COUNT:
            edits.append(Edit(source.start(product.left), source.start(product.right), ""))
        elif isinstance(product.op, ast.Mult | ast.Div) and name_of(product.right) == COUNT:
            edits.append(Edit(source.end(product.left), source.end(product.right), ""))
    return edits
