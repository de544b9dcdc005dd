"""Repairs fm14: a clone gets the weights of its model, or the model takes its place."""

import ast

from ...examiner.blame import name_of, targets_in
from ...examiner.repair import Binding, Source, Ways, repairs

COPIES = "clone_model", "deepcopy", "copy"
BUILT = "{0}.build_from_config({1}.get_build_config())"
FILLED = "{0}.set_weights({1}.get_weights())"


@repairs("fm14")
def fill_or_share(source: Source, line: int) -> Ways:
    lines = [each for each in (line, *source.told) if source.simple_statement(each)]
    calls = [call for each in lines for call in source.of(ast.Call, source.statement(each))]
    clones = [(call, source.code(copied)) for call in calls if (copied := copied_by(call))]
    for call, model in clones:
        made = source.parents[call]
        if isinstance(made, Binding):
            name = source.code(targets_in(made)[0])
            for template in ([FILLED], [BUILT, FILLED]):
                yield [source.insert_after(made, *(each.format(name, model) for each in template))]
    yield from ([source.replace(call, model)] for call, model in clones)


def copied_by(call: ast.Call) -> ast.expr | None:
    """Returns the model of which a call makes a copy, or one with the same configuration."""
    match call:
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=model, attr="get_config"))]):
            return model if name_of(call.func) == "from_config" else None
        case ast.Call(args=[model, *_]) if name_of(call.func) in COPIES:
            return model
    return None
