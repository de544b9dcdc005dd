"""Repairs fm30: layers, losses and metrics of the file that a saved model may need are registered."""

import ast

from ...examiner.blame import keyword
from ...examiner.repair import Source, Ways, decorators, repairs

REGISTERED = "@tf.keras.utils.register_keras_serializable()"
KINDS = ".layers.", ".Layer", ".Model", ".losses.", ".metrics.", ".initializers."


@repairs("fm30")
def register(source: Source, line: int) -> Ways:
    compiled = functions_compiled(source)
    needed = [
        each
        for each in source.tree.body
        if (isinstance(each, ast.ClassDef) and is_of_keras(source, each))
        or (isinstance(each, ast.FunctionDef) and each.name in compiled)
    ]
    if needed and not any(decorators(each) for each in needed):
        yield [source.insert_before(each, REGISTERED) for each in needed]


def is_of_keras(source: Source, kind: ast.ClassDef) -> bool:
    return any(part in source.code(base) for base in kind.bases for part in KINDS)


def functions_compiled(source: Source) -> set[str]:
    """Returns the names that a model is compiled with as its loss or among its metrics."""
    values = [
        keyword(call, name) for call in source.calls("compile") for name in ("loss", "metrics")
    ]
    given = [part for value in values if value is not None for part in ast.walk(value)]
    return {part.id for part in given if isinstance(part, ast.Name)}
