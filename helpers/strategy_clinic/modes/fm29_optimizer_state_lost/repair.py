"""Repairs fm29: the optimizer is saved with what it trains, or has its variables before they are loaded."""

import ast

from ...examiner.blame import targets_in
from ...examiner.repair import Binding, Source, Ways, repairs
from ...examiner.repair_optimizers import OPTIMIZERS
from ...examiner.repair_saved import added, hold, made_at, optimizers_made, places


@repairs("fm29")
def save_optimizer(source: Source, line: int) -> Ways:
    yield from keep_the_first(source, line)
    yield from keep_compiled(source, line)
    for place in places(source, line):
        told = made_at(source, source.told, place)
        yield from hold(source, place, [*told, *optimizers_made(source, place)])
    yield from hold_beside_another(source)
    yield from build_before_load(source, line)


def hold_beside_another(source: Source) -> Ways:
    """Yields the variables of an optimizer in a dict that has those of another one, by which a program saves and loads."""
    for held in source.of(ast.Dict):
        kept = {source.code(each) for each in held.values}
        made = [f"{each}.variables" for each in optimizers_made(source, held.lineno)]
        missing = [each for each in made if each not in kept]
        for each in missing if len(missing) < len(made) else ():
            if edit := added(source, held, each.split(".")[-2], each):
                yield [edit]


def build_before_load(source: Source, line: int) -> Ways:
    """Yields a line above the one that loads weights: an optimizer without variables gets none from the file."""
    statement = source.simple_statement(line)
    for call in source.calls("load_weights", statement) if statement else ():
        if statement and isinstance(call.func, ast.Attribute):
            model = source.code(call.func.value)
            built = f"{model}.optimizer.build({model}.trainable_variables)"
            yield [source.insert_before(statement, built)]
            scope = f"with {model}.distribute_strategy.scope():"
            yield [source.insert_before(statement, scope, f"    {built}")]


def keep_the_first(source: Source, line: int) -> Ways:
    """Yields a program without a statement that makes an optimizer again, under the name of the one that was loaded."""
    statement = source.simple_statement(line)
    if not isinstance(statement, Binding) or not statement.value:
        return
    names = {*map(source.code, targets_in(statement))}
    above = [each for each in source.assignments() if each.lineno < statement.lineno]
    is_again = any(names & {*map(source.code, targets_in(each))} for each in above)
    if is_again and OPTIMIZERS.search(source.code(statement.value)):
        yield [source.without(statement)]


def keep_compiled(source: Source, line: int) -> Ways:
    """Yields a program that does not compile a model again."""
    statement = source.simple_statement(line)
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if statement and is_call and source.calls("compile", statement):
        yield [source.without(statement)]
