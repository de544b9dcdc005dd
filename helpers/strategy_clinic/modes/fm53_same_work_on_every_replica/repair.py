"""Repairs fm53: a loop goes over the same dataset, distributed, or what makes the dataset distributes it."""

import ast

from ...examiner.blame import name_of
from ...examiner.repair import Source, Ways, repairs_statement

PASS_ON = "enumerate", "iter", "tqdm"  # what they are given


@repairs_statement("fm53", keeps_training=True, compound=True)
def distribute_dataset(source: Source, statement: ast.stmt) -> Ways:
    dataset = dataset_of(source, statement)
    if dataset is None:
        return
    for strategy in source.strategies(statement):
        distributed = f"{strategy}.experimental_distribute_dataset({source.code(dataset)})"
        yield [source.replace(dataset, distributed)]


def dataset_of(source: Source, statement: ast.stmt) -> ast.expr | None:
    """Returns what a loop goes over, also one in an expression, or what a statement makes or returns."""
    match statement:
        case ast.For(iter=taken):
            pass
        case ast.Return(value=taken) | ast.Assign(value=taken) | ast.AnnAssign(value=taken):
            loops = source.of(ast.comprehension, statement)
            taken = loops[0].iter if loops else taken
        case _:
            return None
    is_passed = isinstance(taken, ast.Call) and name_of(taken.func) in PASS_ON and taken.args
    return taken.args[0] if isinstance(taken, ast.Call) and is_passed else taken
