"""Repairs fm26: the size of the global batch does not grow with the number of replicas."""

import ast

from ...examiner.repair import Source, Ways, repairs_statement

COUNT = ".num_replicas_in_sync"


@repairs_statement("fm26")
def same_global_batch(source: Source, statement: ast.stmt) -> Ways:
    for product in source.of(ast.BinOp, statement):
        if isinstance(product.op, ast.Mult):
            sides = product.left, product.right
            kept = [side for side in sides if not source.code(side).endswith(COUNT)]
            if len(kept) == 1 and isinstance(kept[0], (ast.Constant, ast.Name, ast.Attribute)):
                yield [source.replace(product, source.code(kept[0]))]
