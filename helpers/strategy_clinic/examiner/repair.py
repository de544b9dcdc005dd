"""Writes repairs: the modules repair.py of the modes turn a line and the text of its file into edits."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TypeVar, cast

from .blame import arguments_of, last_line, name_of, spans, targets_in
from .edits import Edit, Position, Repair, inserted, offset
from .findings import Finding, Location
from .rule import things_in

Node = TypeVar("Node", bound=ast.AST)
Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Binding = ast.Assign | ast.AnnAssign
# What only a strategy has, by which an expression is known to be one.
OF_STRATEGY = {
    "scope",
    "run",
    "reduce",
    "num_replicas_in_sync",
    "experimental_distribute_dataset",
    "distribute_datasets_from_function",
}
# By the names that repairs use
IMPORTS = {"tf": "import tensorflow as tf", "json": "import json", "os": "import os"}
# To repair: the edits of each, those that are likelier right first; none where the source has not the form that is known.
Ways = Iterator[Sequence[Edit]]
Repairer = Callable[["Source", int], Ways]
RepairerOfStatement = Callable[["Source", ast.stmt], Ways]


@dataclass(frozen=True)
class RepairOfMode:
    mode: str
    write: Repairer
    # What one device trains is right before it, and the same after it: one that changes it is another program.
    keeps_training: bool = False


def repairs(mode: str, *, keeps_training: bool = False) -> Callable[[Repairer], RepairOfMode]:
    """Makes a RepairOfMode of a function from a source and the finding's line in it to edits."""
    return lambda write: RepairOfMode(mode, write, keeps_training)


def repairs_statement(
    mode: str, *, keeps_training: bool = False, compound: bool = False
) -> Callable[[RepairerOfStatement], RepairOfMode]:
    """Makes one of a function from a source and the statement of the line to edits, if this stands alone in its lines.

    With `compound`, of a loop or a condition, too, and of a statement beside others.
    """

    def made(write: RepairerOfStatement) -> RepairOfMode:
        def write_at(source: Source, line: int) -> Ways:
            statement = source.statement(line) if compound else source.simple_statement(line)
            return write(source, statement) if statement else iter(())

        return RepairOfMode(mode, write_at, keeps_training)

    return made


@functools.cache
def repairers() -> Mapping[str, RepairOfMode]:
    """Returns what the modules repair.py in the folders of the modes define, by mode."""
    found = things_in("repair")
    return {each.mode: each for each in found if isinstance(each, RepairOfMode)}


def written_repairs(
    finding: Finding, line: int, text: str, told: Sequence[int] = (), file: str = ""
) -> Iterator[Repair]:
    """Yields the repairs that can be written for a finding in its file, or another one, with this text; each is Python still.

    `told` are the lines that its sentences tell beside its own, such as where something was made.
    """
    known = repairers().get(finding.mode)
    if known is None or not is_python(text):
        return
    source = Source(text, told, f"{finding.message}; {finding.proof}")
    edited = "" if file == finding.file else file
    different = {text}
    for edits in known.write(source, line):
        whole = tuple(source.with_imports(edits))
        repair = Repair(finding.mode, finding.file, finding.line, text, whole, edited=edited)
        if repair.after not in different:
            different.add(repair.after)
            if is_python(repair.after):
                yield repair


def places_told(finding: Finding, file: str) -> list[Location]:
    """Returns the places in a file that the sentences of a finding tell."""
    found = [within_file(each, file) for each in told_by(finding)]
    return [*filter(None, found)]


def told_by(finding: Finding) -> list[Location]:
    return [part for part in (*finding.message, *finding.proof) if isinstance(part, Location)]


def within_file(place: Location, file: str) -> Location:
    """Returns the innermost place of a stack that is in this file."""
    frames = [each for each in place.frames if each.path == file]
    is_innermost = frames[:1] == [*place.frames[:1]]
    return Location(tuple(frames), place.cell if is_innermost else 0)


def is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text))
    except SyntaxError:
        return False


# What repairers read and write


class Source:
    """The text of a file: its statements and calls, and edits to them."""

    def __init__(self, text: str, told: Sequence[int] = (), said: str = ""):
        self.text, self.lines = text, text.split("\n")
        self.told = told  # lines that the finding tells beside its own
        self.said = said  # what it says
        self.tree = ast.parse(text)
        # Before Python 3.12, the nodes in an f-string have no positions of their own.
        nodes = list(ast.walk(self.tree))
        strings = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        self.unplaced = {part for node in strings for part in ast.walk(node) if part is not node}
        self.parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.nodes = sorted((node for node in nodes if node not in self.unplaced), key=place_of)
        self.known_names: dict[ast.stmt, set[str]] = {}

    def with_imports(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Returns edits with the imports that they need; none if a name that they use is that of something else."""
        lines = {
            name: line
            for name, line in IMPORTS.items()
            if any(re.search(rf"(?<![\w.]){name}\.", each.text) for each in edits)
        }
        known = {f"import {ast.unparse(each)}" for each in self.of(ast.alias)}
        missing = {name: line for name, line in lines.items() if line not in known}
        imports = [each for each in self.tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
        if not missing:
            return edits
        if not imports or self.bound() & {*missing}:
            return []
        return [*edits, self.insert_after(imports[-1], *missing.values())]

    def bound(self) -> set[str]:
        """Returns all names that the file gives to something."""
        found = {each.id for each in self.of(ast.Name) if not isinstance(each.ctx, ast.Load)}
        found |= {each.asname or each.name for each in self.of(ast.alias)}
        found |= {each.arg for each in self.of(ast.arg)}
        found |= {each.name for each in self.of(ast.FunctionDef)}
        return found | {each.name for each in self.of(ast.ClassDef)}

    def of(self, kind: type[Node] | UnionType, within: ast.AST | None = None) -> list[Node]:
        """Returns nodes of a kind in the order of the text."""
        if within is None:
            return [node for node in self.nodes if isinstance(node, kind)]
        found = [node for node in ast.walk(within) if isinstance(node, kind)]
        return sorted((node for node in found if node not in self.unplaced), key=place_of)

    def code(self, node: ast.AST) -> str:
        """Returns the text of a node, cut from the lines: `ast.get_source_segment` splits the whole file each time."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not last:
            return ""
        lines = self.lines[first - 1 : last]
        lines[-1] = lines[-1].encode()[: getattr(node, "end_col_offset", None)].decode()
        lines[0] = lines[0].encode()[getattr(node, "col_offset", 0) :].decode()
        return "\n".join(lines)

    def statement(self, line: int) -> ast.stmt | None:
        """Returns the innermost statement of this line."""
        spanning = [each for each in self.of(ast.stmt) if spans(each, line)]
        return spanning[-1] if spanning else None

    def simple_statement(self, line: int) -> ast.stmt | None:
        """Returns the statement of this line if it contains no others and stands alone in its lines."""
        statement = self.statement(line)
        is_simple = statement and not hasattr(statement, "body") and self.is_alone(statement)
        return statement if is_simple else None

    def is_alone(self, statement: ast.stmt) -> bool:
        """Tells whether nothing but a comment stands beside a statement in its lines."""
        before = self.lines[statement.lineno - 1].encode()[: statement.col_offset]
        after = self.lines[last_line(statement) - 1].encode()[statement.end_col_offset :].strip()
        return not before.strip() and (not after or after.startswith(b"#"))

    def calls(self, names: str | Sequence[str], within: ast.AST | None = None) -> list[ast.Call]:
        """Returns the calls of functions and methods with this last name, or with one of these, in their order."""
        wanted, calls = [names] if isinstance(names, str) else names, self.of(ast.Call, within)
        return [call for name in wanted for call in calls if name_of(call.func) == name]

    def over_all(self, names: Sequence[str], within: ast.AST) -> list[ast.Call]:
        """Returns the calls of functions with these last names that reduce all values: they are given no axis."""
        calls = self.calls(names, within)
        return [call for call in calls if len(call.args) == 1 and not call.keywords]

    def function(self, node: ast.AST) -> ast.AST:
        """Returns the function that a node is in, or the module."""
        scopes = ast.FunctionDef, ast.Lambda, ast.ClassDef
        return next((each for each in self.parents_of(node) if isinstance(each, scopes)), self.tree)

    def outermost(self, node: ast.AST) -> ast.stmt:
        """Returns the statement of the module that a node is in."""
        return cast(ast.stmt, [node, *self.parents_of(node)][-2])

    def assigned(self, name: str, function: ast.AST) -> ast.expr | None:
        """Returns the only value assigned to a name in a function or module, None if there are none or several."""
        found = [
            each.value
            for each in self.assignments(function)
            if each.value
            and self.function(each) is function
            and name in map(self.code, targets_in(each))
        ]
        return found[0] if len(found) == 1 else None

    def resolved(self, value: ast.expr) -> ast.expr:
        """Returns what a name was assigned to in its function, and another value as it is."""
        made = self.assigned(self.code(value), self.function(value))
        return made if made and isinstance(value, ast.Name) else value

    def assignments(self, within: ast.AST | None = None) -> list[Binding]:
        return self.of(Binding, within)

    def makers(self, within: ast.AST | None = None) -> list[tuple[Binding, ast.expr, ast.Call]]:
        """Returns the statements that assign what a call returns, each with what gets it, and with the call."""
        pairs = [(e, targets_in(e)[0], e.value) for e in self.assignments(within)]
        return [(made, to, call) for made, to, call in pairs if isinstance(call, ast.Call)]

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Returns the statements among which a statement stands."""
        parent = self.parents[statement]
        fields = (value for _, value in ast.iter_fields(parent) if isinstance(value, list))
        return next(value for value in fields if statement in value)

    def below(self, statement: ast.stmt) -> list[ast.stmt]:
        """Returns the statements that follow one in its block."""
        block = self.block(statement)
        return block[block.index(statement) + 1 :]

    # Edits

    def position(self, line: int, byte: int) -> Position:
        return line, len(self.lines[line - 1].encode()[:byte].decode()) + 1

    def start(self, node: ast.expr | ast.stmt) -> Position:
        return self.position(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> Position:
        return self.position(last_line(node), node.end_col_offset or 0)

    def end_of_line(self, line: int) -> Position:
        return line, len(self.lines[line - 1]) + 1

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        return Edit(self.start(node), self.end(node), text)

    def insert_before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Inserts lines before a statement, as far indented as it is."""
        first = min([statement.lineno, *(each.lineno for each in decorators(statement))])
        text = "".join(f"{self.indent(statement)}{line}".rstrip() + "\n" for line in lines)
        return inserted((first, 1), text)

    def insert_after(self, statement: ast.stmt, *lines: str) -> Edit:
        text = "".join(f"\n{self.indent(statement)}{line}" for line in lines)
        return inserted(self.end_of_line(last_line(statement)), text)

    def delete(self, first: int, last: int) -> Edit:
        """Deletes whole lines."""
        return Edit((first, 1), (last + 1, 1), "")

    def insert_first(self, function: ast.FunctionDef, *lines: str) -> Edit:
        """Inserts lines at the beginning of a function, below its docstring."""
        first = function.body[0]
        is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        put = self.insert_after if is_docstring else self.insert_before
        return put(first, *lines)

    def append(self, own: ast.ClassDef, text: str) -> Edit:
        """Adds a text below the last line of a class."""
        return inserted(self.end_of_line(last_line(own)), text)

    def without(self, statement: ast.stmt) -> Edit:
        """Deletes a statement, or puts `pass` in its place if it is alone."""
        if self.block(statement) == [statement]:
            return self.replace(statement, "pass")
        return self.delete(statement.lineno, last_line(statement))

    def move(
        self,
        statement: ast.stmt,
        above: ast.stmt | None = None,
        below: ast.stmt | None = None,
    ) -> list[Edit]:
        """Moves a statement above or below another one of its block; none if it is not alone in its lines."""
        first, last = statement.lineno, last_line(statement)
        if not self.is_alone(statement):
            return []
        text = "\n".join([*self.lines[first - 1 : last], ""])
        line = above.lineno if above else last_line(below) + 1 if below else first
        return [self.delete(first, last), inserted((line, 1), text)]

    def add_argument(self, call: ast.Call, text: str) -> Edit:
        """Adds an argument at the end of a call."""
        end = self.end(call)
        place = (end[0], end[1] - 1)
        if not arguments_of(call):
            return inserted(place, text)
        after = max(map(self.end, arguments_of(call)))
        between = self.text[offset(self.text, after) : offset(self.text, place)]
        line, column = after
        comma = between.find(",") + 1
        if comma and "\n" not in between[:comma] and "#" not in between[:comma]:
            return inserted((line, column + comma), f" {text}")
        return inserted(after, f", {text}")

    def set_argument(self, call: ast.Call, name: str, value: str) -> Edit:
        """Adds a keyword argument to a call, which may be given one of this name by `**`."""
        for unpacked in [word.value for word in call.keywords if word.arg is None]:
            return self.replace(unpacked, f'{{**{self.code(unpacked)}, "{name}": {value}}}')
        return self.add_argument(call, f"{name}={value}")

    def indent(self, statement: ast.stmt) -> str:
        line = self.lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    # Scopes

    def scope_before(self, statement: ast.stmt) -> str:
        """Returns the scope, as code, of the only strategy that is made before a statement, or that is used near it."""
        functions = self.function(statement), self.tree
        made = [(each, to) for each, to, call in self.makers() if is_strategy(call)]
        sure = [
            self.code(to)
            for each, to in made
            if self.parents[each] in functions and last_line(each) < statement.lineno
        ]
        if len(sure) == len(made) == 1:
            return f"{sure[0]}.scope()"
        used = [] if made else self.strategies(statement)
        return f"{used[0]}.scope()" if used else ""

    def in_scope_of(self, model: str, statement: ast.stmt, line: str) -> list[str]:
        """Returns a line as it stands beside a statement, in the scope of the strategy that a model of Keras has."""
        if self.is_in_scope(statement):
            return [line]
        scope = self.scope_before(statement) or f"{model}.distribute_strategy.scope()"
        return [f"with {scope}:", f"    {line}"]

    def strategies(self, statement: ast.stmt) -> list[str]:
        """Returns what is used as a strategy where this statement can see it, as code, the likeliest first."""
        used = [
            each.value
            for each in self.of(ast.Attribute)
            if each.attr in OF_STRATEGY and isinstance(each.value, ast.Name | ast.Attribute)
        ]
        used.sort(key=lambda each: self.function(each) is not self.function(statement))
        visible = [self.code(each) for each in used if self.can_see(statement, each)]
        return list(dict.fromkeys(visible))

    def can_see(self, statement: ast.stmt, value: ast.expr) -> bool:
        """Tells whether a name, or an attribute of one, is known where a statement stands."""
        name = self.code(value).partition(".")[0]
        if name == "self":
            return self.class_of(statement) is self.class_of(value) is not None
        return name in self.names_before(statement)

    def is_later(self, one: ast.stmt, other: ast.stmt) -> bool:
        """Tells whether a statement stands where another one does, or below it in its function."""
        return one.lineno >= other.lineno and self.function(one) is self.function(other)

    def as_seen(self, statement: ast.stmt, value: ast.expr) -> list[str]:
        """Returns the code for a name or an attribute where a statement stands, by the objects of another class."""
        if self.can_see(statement, value):
            return [self.code(value)]
        owner, _, rest = self.code(value).partition(".")
        own = self.class_of(value)
        if owner != "self" or own is None:
            return []
        made = [target for _, target, call in self.makers() if name_of(call.func) == own.name]
        objects = [each for each in made if isinstance(each, ast.Name | ast.Attribute)]
        return [f"{self.code(each)}.{rest}" for each in objects if self.can_see(statement, each)]

    def names_before(self, statement: ast.stmt) -> set[str]:
        """Returns the names that have a value where a statement begins: parameters, and what is bound above it or outside."""
        if statement not in self.known_names:
            self.known_names[statement] = self.names_seen(statement)
        return self.known_names[statement]

    def names_seen(self, statement: ast.stmt) -> set[str]:
        found: set[str] = set()
        around = self.around(statement)
        for each in around:
            found |= parameters(each)
        for name in self.of(ast.Name):
            is_above = name.lineno < statement.lineno or self.function(name) is not around[0]
            if not isinstance(name.ctx, ast.Load) and self.function(name) in around and is_above:
                found.add(name.id)
        found |= {each.name for each in self.of(ast.FunctionDef)}
        return found | {(each.asname or each.name).partition(".")[0] for each in self.of(ast.alias)}

    def aliases(self, name: str) -> list[str]:
        """Returns other names that the file gives to what it imports, or has as an attribute of that."""
        imported = [each.asname for each in self.of(ast.alias) if each.name == name and each.asname]
        made = [each for each in self.of(ast.Assign) if name_of(each.value) == name]
        return [*imported, *(name_of(each.targets[0]) for each in made)]

    def around(self, node: ast.AST) -> list[ast.AST]:
        """Returns the functions that a node is in, the innermost first, and the module."""
        return [*(each for each in self.parents_of(node) if isinstance(each, Function)), self.tree]

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((e for e in self.parents_of(node) if isinstance(e, ast.ClassDef)), None)

    def parents_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields what a node is in, the innermost first."""
        while parent := self.parents.get(node):
            yield parent
            node = parent

    def is_in_scope(self, statement: ast.stmt) -> bool:
        around = [each for each in self.parents_of(statement) if isinstance(each, ast.With)]
        entered = [item.context_expr for each in around for item in each.items]
        return any(".scope()" in self.code(each) for each in entered)

    def under_scope(self, statements: Sequence[ast.stmt]) -> list[Edit]:
        """Puts statements that stand one after the other under the scope of the strategy; no edits if they cannot be."""
        first, last = statements[0], statements[-1]
        scope = self.scope_before(first)
        alone = all(self.simple_statement(each.lineno) for each in statements)
        if not scope or not alone or self.is_in_scope(first) or self.has_long_strings(statements):
            return []
        indent = self.indent(first)
        lines = range(first.lineno + 1, last_line(last) + 1)
        inner = [inserted((line, 1), "    ") for line in lines if self.lines[line - 1].strip()]
        return [inserted((first.lineno, 1), f"{indent}with {scope}:\n    "), *inner]

    def has_long_strings(self, statements: Sequence[ast.stmt]) -> bool:
        """Tells whether a string goes over several lines, which indentation would change."""
        strings = [each for statement in statements for each in self.of(ast.Constant, statement)]
        joined = [each for statement in statements for each in self.of(ast.JoinedStr, statement)]
        return any(each.lineno != each.end_lineno for each in (*strings, *joined))


def is_strategy(call: ast.Call) -> bool:
    return name_of(call.func).endswith("Strategy")


def place_of(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def parameters(function: ast.AST) -> set[str]:
    if not isinstance(function, Function):
        return set()
    given = function.args
    every = *given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg
    return {each.arg for each in every if each}


def decorators(statement: ast.stmt) -> list[ast.expr]:
    return list(getattr(statement, "decorator_list", ()))


def names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
