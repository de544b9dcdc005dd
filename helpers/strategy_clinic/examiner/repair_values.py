"""Edits that several modes share: a number that a restart forgets is kept as another one is, or in a variable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .blame import name_of
from .edits import Edit
from .repair import Source
from .repair_saved import added, is_checkpoint

# Classes whose variables a checkpoint finds.
TRACKABLE = {"Module", "Layer", "Model", "Metric", "AutoTrackable"}
IN_PLACE = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


def keep_number(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    """Yields the edits by which what a statement makes is saved and read again: that of this line, or one that is told."""
    for each in (line, *source.told):
        statement = source.simple_statement(each)
        if isinstance(statement, ast.Assign):
            for lost in names_made(source, statement):
                yield from beside_another(source, lost)
            if len(statement.targets) == 1:
                yield from in_variable(source, statement)


def names_made(source: Source, statement: ast.Assign) -> list[str]:
    """Returns the names and attributes that get a value, as code."""
    targets = [
        each
        for target in statement.targets
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    return [source.code(each) for each in targets if isinstance(each, ast.Name | ast.Attribute)]


# As another one


@dataclass(frozen=True)
class Read:
    """A statement that takes a value from what was saved, by the key that it was saved with."""

    key: str
    target: str
    statement: ast.Assign


def beside_another(source: Source, lost: str) -> Iterator[Sequence[Edit]]:
    """Yields copies of the places that save and read another value; those that make it a whole number last."""
    found = kept_beside(source, lost)
    for read, saves in sorted(found, key=lambda each: "int(" in source.code(each[0].statement)):
        name, line = lost.rpartition(".")[2], source.code(read.statement)
        for quote in "'\"":
            line = line.replace(f"{quote}{read.key}{quote}", f"{quote}{name}{quote}")
        kept = [kept_in(source, each, read, lost) for each in saves]
        again = source.insert_after(read.statement, renamed(line, read.target, lost))
        yield [*filter(None, kept), again]


def kept_beside(source: Source, lost: str) -> list[tuple[Read, list[ast.Call | ast.Dict]]]:
    """Returns the values of the same object that are saved and read by a key, with what saves them, and not this one."""
    owner, _, name = lost.rpartition(".")
    found = []
    for read in reads(source):
        saves = [
            each
            for each in holders(source)
            if (value := values_in(each).get(read.key)) and mentions(source, value, read.target)
        ]
        known = any(name in values_in(each) for each in saves)
        if saves and not known and owner == read.target.rpartition(".")[0] and lost != read.target:
            found.append((read, saves))
    return found


def reads(source: Source) -> list[Read]:
    found = []
    for each in source.of(ast.Assign):
        target = each.targets[0]
        keys = [key.slice for key in source.of(ast.Subscript, each.value)]
        keys += [call.args[0] for call in source.calls("get", each.value) if call.args]
        named = [key.value for key in keys if isinstance(key, ast.Constant)]
        is_alone = source.simple_statement(each.lineno) is each
        if isinstance(target, ast.Name | ast.Attribute) and is_alone:
            found += [Read(key, source.code(target), each) for key in named if isinstance(key, str)]
    return found


def holders(source: Source) -> list[ast.Call | ast.Dict]:
    return [*source.of(ast.Dict), *source.of(ast.Call)]


def values_in(holder: ast.Call | ast.Dict) -> dict[str, ast.expr]:
    """Returns the values that a dict or the arguments of a call have by name."""
    if isinstance(holder, ast.Call):
        return {word.arg: word.value for word in holder.keywords if word.arg}
    pairs = zip(holder.keys, holder.values)
    return {str(key.value): each for key, each in pairs if isinstance(key, ast.Constant)}


def kept_in(source: Source, holder: ast.Call | ast.Dict, read: Read, lost: str) -> Edit | None:
    value = renamed(source.code(values_in(holder)[read.key]), read.target, lost)
    return added(source, holder, lost.rpartition(".")[2], value)


def mentions(source: Source, value: ast.expr, name: str) -> bool:
    return bool(whole_word(name).search(source.code(value)))


def renamed(code: str, name: str, other: str) -> str:
    return whole_word(name).sub(lambda _: other, code)


def whole_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(name)}\b")


# In a variable


def in_variable(source: Source, statement: ast.Assign) -> Iterator[Sequence[Edit]]:
    """Yields the edits that make a number of a trackable object, or beside a checkpoint, a variable of it."""
    lost, number = source.code(statement.targets[0]), number_of(source, statement.value)
    scope = source.class_of(statement) if "." in lost else source.function(statement)
    if scope is None or not number or not can_be_variable(source, scope, statement, lost):
        return
    saved = saved_in(source, scope, statement, lost)
    if saved is None:
        return
    value = f"tf.Variable({source.code(statement.value)}, trainable=False)"
    made = source.replace(statement.value, value)
    for read in (f"{number}({lost}.numpy())", lost):
        yield [made, *saved, *used(source, scope, statement, lost, read)]


def can_be_variable(source: Source, scope: ast.AST, made: ast.Assign, lost: str) -> bool:
    """Tells whether all statements that set a value can set a variable, and no function has another of the name."""
    others = [each for each in setting(source, scope, lost) if each is not made]
    is_known = all(
        type(each.op) in IN_PLACE if isinstance(each, ast.AugAssign) else len(each.targets) == 1
        for each in others
    )
    return is_known and all(each.arg != lost for each in source.of(ast.arg, scope))


def number_of(source: Source, value: ast.expr) -> str:
    """Returns the type of a number, and nothing for another value."""
    match value:
        case ast.Constant(value=bool()):
            return ""
        case ast.Constant(value=int() | float() as constant):
            return type(constant).__name__
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() as constant)):
            return type(constant).__name__
    return "float" if re.search(r"\binf\b", source.code(value)) else ""


def saved_in(source: Source, scope: ast.AST, statement: ast.Assign, lost: str) -> list[Edit] | None:
    """Returns the edits by which a checkpoint has the variable, which a trackable object needs not; None without a checkpoint."""
    if isinstance(scope, ast.ClassDef) and TRACKABLE & {*map(name_of, scope.bases)}:
        return []
    for call in source.of(ast.Call, scope):
        if is_checkpoint(call) and call.lineno > statement.lineno:
            edit = added(source, call, lost.rpartition(".")[2], lost)
            return [edit] if edit else None
    return None


def used(source: Source, scope: ast.AST, made: ast.Assign, lost: str, read: str) -> Iterator[Edit]:
    """Yields the edits of all other places that set or read the value."""
    statements = [each for each in setting(source, scope, lost) if each is not made]
    for each in statements:
        yield source.replace(each, set_by(source, each, lost, read))
    inside = {node for each in [made, *statements] for node in ast.walk(each)}
    for node in [*source.of(ast.Name, scope), *source.of(ast.Attribute, scope)]:
        if node not in inside and source.code(node) == lost and read != lost:
            yield source.replace(node, read)


def setting(source: Source, scope: ast.AST, lost: str) -> list[ast.Assign | ast.AugAssign]:
    every: list[ast.Assign | ast.AugAssign] = [
        *source.of(ast.Assign, scope),
        *source.of(ast.AugAssign, scope),
    ]
    return [each for each in every if lost in map(source.code, targets_of(each))]


def targets_of(statement: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return [statement.target] if isinstance(statement, ast.AugAssign) else statement.targets


def set_by(source: Source, statement: ast.Assign | ast.AugAssign, lost: str, read: str) -> str:
    value = renamed(source.code(statement.value), lost, read)
    method = IN_PLACE[type(statement.op)] if isinstance(statement, ast.AugAssign) else "assign"
    return f"{lost}.{method}({value})"
