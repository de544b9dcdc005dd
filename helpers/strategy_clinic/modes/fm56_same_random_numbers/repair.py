"""Repairs fm56: the seed of a step's random numbers contains the number of the replica."""

import ast

from ...examiner.blame import keyword, name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, Ways, repairs_statement
from ...examiner.repair_sums import CONTEXT

REPLICA = f"{CONTEXT}.replica_id_in_sync_group"
FOLDED = f"tf.random.experimental.stateless_fold_in({{0}}, {REPLICA})"


@repairs_statement("fm56", compound=True)
def seed_by_replica(source: Source, statement: ast.stmt) -> Ways:
    for call in source.of(ast.Call, statement):
        is_stateless = name_of(call.func).startswith("stateless_")
        given = call.args[1] if is_stateless and len(call.args) > 1 else keyword(call, "seed")
        if given is not None:
            yield [of_replica(source, given, is_stateless)]


def of_replica(source: Source, seed: ast.expr, is_stateless: bool) -> Edit:
    """Returns the edit of a seed by which the first replica draws what it did, if the seed is written out."""
    first = seed.elts[0] if isinstance(seed, ast.Tuple | ast.List) else seed
    if first is seed and is_stateless:
        return source.replace(seed, FOLDED.format(source.code(seed)))
    return source.replace(first, f"{source.code(first)} + {REPLICA}")
