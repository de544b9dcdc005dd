"""Repairs fm21: the function that makes a dataset for each worker batches by a replica's share, or is not used for that."""

import ast

from ...examiner.blame import name_of, targets_in
from ...examiner.repair import Binding, Source, Ways, parameters, repairs_statement

COUNT = "num_replicas_in_sync"  # by which `fit` divides what it gets
SHARE = "get_per_replica_batch_size"
DISTRIBUTE = "experimental_distribute_dataset"


@repairs_statement("fm21", keeps_training=True)
def share_of_batch(source: Source, statement: ast.stmt) -> Ways:
    """Yields the share in place of a size that is given to `batch`, or that is kept in a name for it."""
    named = [source.resolved(each) for each in source.of(ast.Name, statement)]
    for quotient in [*source.of(ast.BinOp, statement), *named]:
        if isinstance(quotient, ast.BinOp) and name_of(quotient.right) == COUNT:
            yield [source.replace(quotient, source.code(quotient.left))]
    for size in sizes(source, statement):
        for context in contexts(source, statement):
            if SHARE not in source.code(size):
                yield [source.replace(size, f"{context}.{SHARE}({of_whole(source, size)})")]
    yield from distributed_whole(source, statement)


def distributed_whole(source: Source, statement: ast.stmt) -> Ways:
    """Yields the distribution of one dataset, where a function makes it that does not use the context."""
    for call in source.calls("distribute_datasets_from_function", statement):
        match call:
            case ast.Call(func=ast.Attribute(value=strategy), args=[ast.Lambda() as given]):
                used = {each.id for each in source.of(ast.Name, given.body)}
                if not used & parameters(given):
                    whole = f"{source.code(strategy)}.{DISTRIBUTE}({source.code(given.body)})"
                    yield [source.replace(call, whole)]


def sizes(source: Source, statement: ast.stmt) -> list[ast.expr]:
    given = [each for call in source.calls("batch", statement) for each in call.args[:1]]
    if given or not isinstance(statement, Binding) or not statement.value:
        return given
    return [statement.value] if isinstance(targets_in(statement)[0], ast.Name) else []


def of_whole(source: Source, size: ast.expr) -> str:
    """Returns the size of the global batch, which the program may divide by the number of processes."""
    is_divided = isinstance(size, ast.BinOp) and isinstance(size.op, ast.FloorDiv)
    return source.code(size.left if isinstance(size, ast.BinOp) and is_divided else size)


def contexts(source: Source, statement: ast.stmt) -> list[str]:
    """Returns the last parameter of each function around, the innermost first: one of them may get the context."""
    functions = [each for each in source.around(statement) if isinstance(each, ast.FunctionDef)]
    return [each.args.args[-1].arg for each in functions if each.args.args]
