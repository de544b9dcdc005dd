"""Repairs fm35: a model is called before the restore, as the program calls it afterwards, or restored after that call."""

import ast

from ...examiner.repair import Source, Ways, names, parameters, repairs
from ...examiner.repair_saved import is_checkpoint, passed_on

LEVELS = 3  # of assignments between a manager and a model
LONGEST = 3  # statements of a method that builds
MOST_BELOW = 2  # statements that may build


@repairs("fm35")
def call_before_restore(source: Source, line: int) -> Ways:
    yield from calls_below(source, line)
    statement = source.simple_statement(line)
    if statement is None:
        return
    calls = building(source, statement)
    here = [call for call in calls if source.function(call) is source.function(statement)]
    for call in [each for each in here if each.lineno > line]:
        if names(call) <= source.names_before(statement):
            yield from called_before(source, statement, source.code(call))
        for part in (statement, *source.parents_of(statement)):
            block = source.block(part) if isinstance(part, ast.stmt) else []
            later = source.statement(call.lineno)
            if later in block and isinstance(part, ast.stmt):
                yield source.move(part, below=later)
    for method in [source.function(each) for each in calls if each not in here]:
        is_own = source.class_of(method) is source.class_of(statement) is not None
        is_short = isinstance(method, ast.FunctionDef) and len(method.body) <= LONGEST
        if is_own and is_short and parameters(method) == {"self"}:
            yield from called_before(source, statement, f"self.{getattr(method, 'name', '')}()")


def calls_below(source: Source, line: int) -> Ways:
    """Yields a method of the object, which may build and is called next, above the statement that restores."""
    statement = source.statement(line)
    for each in source.below(statement)[:MOST_BELOW] if statement else ():
        if statement and is_method_called(each):
            yield source.move(each, above=statement)


def is_method_called(statement: ast.stmt) -> bool:
    match statement:
        case ast.With(body=[inner]):
            return is_method_called(inner)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[])):
            return True
    return False


def called_before(source: Source, statement: ast.stmt, call: str) -> Ways:
    """Yields a call above a statement, and the same under the scope of the strategy."""
    yield [source.insert_before(statement, call)]
    if (scope := source.scope_before(statement)) and not source.is_in_scope(statement):
        yield [source.insert_before(statement, f"with {scope}:", f"    {call}")]


def building(source: Source, statement: ast.stmt) -> list[ast.Call]:
    """Returns the calls of what a statement restores, and of its method `build`."""
    restored = used(source, statement)
    for _ in range(LEVELS):
        made = [each for each in source.of(ast.Assign) if used(source, each.targets[0]) & restored]
        values: list[ast.expr] = [each.value for each in made]
        values += [
            each for value in values if is_checkpoint(value) for each in passed_on(source, value)
        ]
        restored = restored.union(*(used(source, value) for value in values))
    calls = [(call, source.code(call.func)) for call in source.of(ast.Call)]
    models = [*restored, *(f"{each}.build" for each in restored)]
    return [call for call, code in calls if call.args and code in models]


def used(source: Source, node: ast.AST) -> set[str]:
    """Returns the names and attributes in an expression, but for those of modules and functions that it calls."""
    parts = [*source.of(ast.Name, node), *source.of(ast.Attribute, node)]
    called = {call.func for call in source.of(ast.Call, node)}
    return {source.code(each) for each in parts if each not in called} - {"self"}
