"""Repairs fm72: a class describes all arguments of its `__init__`, by the attributes in which it keeps them."""

import ast

from ...examiner.blame import functions_named, returns_in, spans
from ...examiner.repair import Source, Ways, names, repairs
from ...examiner.repair_values import pairs_of

METHOD = """

    def get_config(self):
        return {{{parts}}}"""


@repairs("fm72")
def describe_arguments(source: Source, line: int) -> Ways:
    """Yields a `get_config` with what it lacks: with what Keras says of the object, where `__init__` takes that."""
    around = [each for each in source.of(ast.ClassDef) if spans(each, line)]
    own = around[-1] if around else None
    made = functions_named(own.body, "__init__") if own else []
    if not own or not made:
        return
    given = [each.arg for each in (*made[0].args.args, *made[0].args.kwonlyargs)]
    kept = {name: code for name in given if (code := kept_in(source, made[0], name))}
    described = functions_named(own.body, "get_config")
    if not described:
        basis = ["**super().get_config()"] if made[0].args.kwarg else []
        parts = [*basis, *(f'"{name}": {code}' for name, code in kept.items())]
        yield [source.append(own, METHOD.format(parts=", ".join(parts)))] if kept else []
        return
    known = {word.value for word in source.of(ast.Constant, described[0])}
    missing = {name: code for name, code in kept.items() if name not in known}
    returned = [each.value for each in returns_in(described[0]) if each.value]
    yield [source.replace(each, with_parts(source, each, missing)) for each in returned if missing]


def kept_in(source: Source, made: ast.AST, name: str) -> str:
    """Returns the attribute that has the value of an argument, as code, maybe as a plain number or list of it."""
    for statement in source.assignments(made):
        for target, value in pairs_of(statement):
            is_own = isinstance(target, ast.Attribute) and source.code(target.value) == "self"
            if is_own and value is not None and name in names(value) and is_plain(value):
                return source.code(target)
    return ""


def is_plain(value: ast.expr) -> bool:
    """Tells whether this is a name, or a number or a list that a function of Python makes of it."""
    match value:
        case ast.Call(
            func=ast.Name(id="float" | "int" | "bool" | "str" | "list" | "tuple"), args=[ast.Name()]
        ):
            return True
        case ast.Name():
            return True
    return False


def with_parts(source: Source, value: ast.expr, parts: dict[str, str]) -> str:
    """Returns the code of a dictionary with more in it."""
    more = ", ".join(f'"{name}": {code}' for name, code in parts.items())
    if isinstance(value, ast.Dict) and value.values:
        code = source.code(value)
        return f"{code[:-1].rstrip().rstrip(',')}, {more}}}"
    return f"{{**{source.code(value)}, {more}}}"
