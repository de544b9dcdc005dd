"""Repairs fm14: a clone gets the weights of its model, or the model takes its place."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

COPIES = "clone_model", "deepcopy", "copy"
BUILT = "{0}.build_from_config({1}.get_build_config())"
FILLED = "{0}.set_weights({1}.get_weights())"


@repairs("fm14")
def fill_or_share(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statements = [source.simple_statement(each) for each in (line, *source.told)]
    clones = [
        (each, call, copied)
        for each in statements
        if each
        for call in source.of(ast.Call, each)
        if (copied := copied_by(call))
    ]
    for statement, call, copied in clones:
        if isinstance(statement, ast.Assign) and statement.value is call:
            names = source.code(statement.targets[0]), source.code(copied)
            for template in ([FILLED], [BUILT, FILLED]):
                yield [source.insert_after(statement, *(each.format(*names) for each in template))]
    for _, call, copied in clones:
        yield [source.replace(call, source.code(copied))]


def copied_by(call: ast.Call) -> ast.expr | None:
    """Returns the model of which a call makes a copy, or one with the same configuration."""
    match call:
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=model, attr="get_config"))]):
            return model if name_of(call.func) == "from_config" else None
        case ast.Call(args=[model, *_]) if name_of(call.func) in COPIES:
            return model
    return None
