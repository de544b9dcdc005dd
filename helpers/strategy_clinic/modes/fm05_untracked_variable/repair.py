"""Repairs fm05: a checkpoint gets the variable that it lacks, or the object that has this variable."""

import ast
import re
from collections.abc import Iterator

from ...examiner.blame import name_of
from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_saved import hold, hold_variables, made_at, places
from ...examiner.repair_values import keep_number, of_objects

MADE = ast.Call | ast.List | ast.ListComp | ast.Dict | ast.DictComp
# By the names of calls: what restores, runs or reads rarely is what a checkpoint lacks.
NOT_KEPT = re.compile(
    r"[Cc]heckpoint|[Ss]trategy|^restore|^parse_|Parser$|Path$|^join$|[Dd]ataset|[Dd]ata$"
)


@repairs("fm05", keeps_training=True)
def save_what_is_missed(source: Source, line: int) -> Ways:
    yield from keep_number(source, line)
    found = places(source, line)
    yield from hold_in_state(source)
    for place in found:
        yield from hold(source, place, made_at(source, source.told, place))
    for place in found:
        yield from hold(source, place, parts(source, place))
    yield from hold_made(source, line)
    yield from hold_variables(source)
    yield from of_objects(source)


def hold_in_state(source: Source) -> Ways:
    """Yields what is told as a part of a dict that a function returns, by which several lines save and load."""
    for function in source.of(ast.FunctionDef):
        for returned in (
            source.of(ast.Return, function) if len(source.calls(function.name)) > 1 else ()
        ):
            for code in made_at(source, source.told, returned.lineno):
                key = f'"{code.rpartition(".")[2]}"'
                if isinstance(returned.value, ast.Name):
                    name = returned.value.id
                    yield [source.insert_before(returned, f"{name}[{key}] = {code}")]
                elif isinstance(returned.value, ast.Dict | ast.DictComp):
                    whole = f"{{**{source.code(returned.value)}, {key}: {code}}}"
                    yield [source.replace(returned.value, whole)]


def hold_made(source: Source, line: int) -> Ways:
    """Yields what the line makes as a part of the checkpoints below it in its function."""
    made = source.simple_statement(line)
    names = [each.id for each in getattr(made, "targets", ()) if isinstance(each, ast.Name)]
    for call in [call for call in source.calls("Checkpoint") if made and call.lineno > line]:
        if made and names and source.function(call) is source.function(made):
            yield from hold(source, call.lineno, names)
            return


def parts(source: Source, line: int) -> Iterator[str]:
    """Yields what may have what is missed: what the finding names, what has variables, of the class, and the last first."""
    statement = source.statement(line)
    own = source.class_of(statement) if statement else None
    made = [each for each in source.of(ast.Assign) if isinstance(each.value, MADE)]
    likely = {
        each.lineno: (
            is_named(source, each),
            bool(source.calls("Variable", each)),
            source.class_of(each) is own,
            each.lineno,
        )
        for each in made
        if not any(NOT_KEPT.search(name_of(call.func)) for call in source.of(ast.Call, each))
    }
    yield from made_at(source, sorted(likely, key=lambda line: likely[line], reverse=True), line)


def is_named(source: Source, made: ast.Assign) -> bool:
    """Tells whether the finding names a class of which an object is made, or the name that it gets."""
    makers = [call.func for call in source.of(ast.Call, made)]
    return bool({*re.findall(r"\w+", source.said)} & {*map(name_of, [*makers, *made.targets])})
