"""Repairs fm10: a model with other variables is compiled with a new optimizer of the same configuration."""

import ast

from ...examiner.blame import first_argument, given_in, name_of
from ...examiner.repair import Source, Ways, names, repairs_statement

IGNORED = "was True already"  # in the sentence of a finding
COMPILE = "{0}.compile_from_config({0}.get_compile_config())"


@repairs_statement("fm10")
def new_optimizer(source: Source, statement: ast.stmt) -> Ways:
    for call in source.calls("compile", statement):
        chosen = first_argument(call, "optimizer")
        if isinstance(chosen, ast.Name):
            fresh = f"type({chosen.id}).from_config({chosen.id}.get_config())"
            yield [source.replace(chosen, fresh)]
    yield from compiled_again(source, statement)


def compiled_again(source: Source, statement: ast.stmt) -> Ways:
    """Yields a compilation below a statement that makes something trainable, or above one that fits a model."""
    given = [target for target, _ in given_in(statement) if name_of(target) == "trainable"]
    for target in given if IGNORED in source.said else ():
        yield [source.insert_before(statement, f"{source.code(target)} = False")]
    put = source.insert_after if given else source.insert_before
    fitted = [
        call.func.value for call in source.calls("fit") if isinstance(call.func, ast.Attribute)
    ]
    models = dict.fromkeys(source.code(each) for each in fitted)
    here = [each for each in models if each in source.names_before(statement)]
    for model in sorted(here, key=lambda name: name not in names(statement)):
        for compiled in [*as_compiled(source, statement, model), COMPILE.format(model)]:
            yield [put(statement, *source.in_scope_of(model, statement, compiled))]


def as_compiled(source: Source, statement: ast.stmt, model: str) -> list[str]:
    """Returns the only compilation in the file, for this model, if a statement can see all that it names."""
    calls = source.calls("compile")
    given = [*calls[0].args, *calls[0].keywords] if len(calls) == 1 else []
    if not given or not names(calls[0]) - {model} <= source.names_before(statement):
        return []
    return [f"{model}.compile({', '.join(map(ast.unparse, given))})"]
