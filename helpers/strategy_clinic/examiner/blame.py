"""Finds the line to blame in the program's own source: where a value comes from, and who decided about it. Runs nothing.

Functions take a stack, the innermost frame first, and return one that begins with the frame to blame.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..base.files import source_text
from ..observer.context import BATCHES
from ..observer.events import Frame, Stack

Node = TypeVar("Node", bound=ast.stmt)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
Loop = ast.For | ast.While
LOOPS_OF_KERAS = "fit", "evaluate", "predict"
# Functions whose first argument is the path of a file.
FILE_FUNCTIONS = "restore", "read", "load_weights", "save_weights", "load_model", "save", "load"
GRADIENTS = {"gradient", "minimize"}
UPDATES = {"apply_gradients", "apply", "minimize"}
# The names of functions that reduce values, in TensorFlow, NumPy and Keras.
MEANS, SUMS = ("reduce_mean", "mean"), ("reduce_sum", "sum")
OTHER_CALLS = {"functools.reduce", "tf.gather"}


# Syntax


def code_at(path: str, line: int) -> str:
    """Returns a line of a file without its indentation; nothing if there is none."""
    try:
        lines = source_text(Path(path)).split("\n")  # as Python counts them
    except OSError:
        return ""
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def nodes_of_file(path: str, kind: Any = ast.AST) -> tuple[Any, ...]:
    """Returns the nodes of a Python file, all or those of a kind; none of a file that cannot be read."""
    try:
        return nodes_of(contents(path, Path(path).stat().st_mtime), kind)
    except OSError:
        return ()


@functools.lru_cache(maxsize=64)
def contents(path: str, _changed: float) -> bytes:
    return Path(path).read_bytes()


@functools.lru_cache(maxsize=256)
def nodes_of(text: bytes, kind: Any) -> tuple[ast.AST, ...]:
    """Rules ask for few kinds of nodes, and often for the same."""
    if kind is not ast.AST:
        return tuple(node for node in nodes_of(text, ast.AST) if isinstance(node, kind))
    try:
        return tuple(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return ()


def nodes_under(node: ast.AST | None) -> Iterator[ast.AST]:
    return ast.walk(node) if node is not None else iter(())


def innermost(frame: Frame, kind: type[Node]) -> Node | None:
    """Returns the smallest node of a kind that the frame's line belongs to; of several in one line, the first with no other."""
    found: Node | None = None
    spanning = [each for each in nodes_of_file(frame.path, kind) if spans(each, frame.line)]
    for each in spanning:  # the outer ones first
        if found is None or height(each) < height(found) or each in nodes_under(found):
            found = each
    return found


def last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def spans(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= last_line(node)


def height(node: ast.stmt) -> int:
    return last_line(node) - node.lineno


def branch_around(frame: Frame) -> ast.If | None:
    """Returns the innermost `if` that a line is under, other than the one that asks whether the file is the program."""
    branch = innermost(frame, ast.If)
    return None if branch is None or "__name__" in names_in(branch.test) else branch


def statement_at(frame: Frame) -> ast.stmt | None:
    return innermost(frame, ast.stmt)


def from_first_line(stack: Stack) -> Stack:
    """Returns the frames with the first line of the statement that a line belongs to, which may have several."""
    statement = statement_at(stack[0]) if stack else None
    return (stack[0]._replace(line=statement.lineno), *stack[1:]) if statement else stack


def functions_around(frame: Frame) -> list[Function]:
    """Returns the functions that the line belongs to, the innermost last."""
    nodes = nodes_of_file(frame.path, Function)
    return sorted((n for n in nodes if spans(n, frame.line)), key=height, reverse=True)


def function_at(frame: Frame) -> Function | None:
    return next(reversed(functions_around(frame)), None)


def function_defined(frame: Frame) -> Function | None:
    """Returns the function that begins on this line, with its decorators if it has some."""
    functions: tuple[Function, ...] = nodes_of_file(frame.path, Function)
    for each in functions:
        first = min(node.lineno for node in (each, *each.decorator_list))
        if (first, each.name) == (frame.line, frame.function):
            return each
    return None


def functions_named(nodes: Iterable[ast.AST], *names: str) -> list[Function]:
    return [each for each in nodes if isinstance(each, Function) and each.name in names]


def functions_in(paths: Iterable[str], *names: str) -> Iterator[tuple[str, Function]]:
    """Yields the functions of these names in files, each with its file."""
    for path in dict.fromkeys(paths):
        yield from ((path, each) for each in functions_named(nodes_of_file(path), *names))


def values_by_name(path: str) -> dict[str, list[ast.expr]]:
    """Returns by name what names of a file and parameters are given; nothing of a file that cannot be read."""
    found: dict[str, list[ast.expr]] = {}
    nodes = nodes_of_file(path)
    takers: dict[str, list[list[str]]] = {}  # the parameters that a call by a name gives
    for node in nodes:
        if isinstance(node, Function):
            for name in names_called(path, node):
                takers.setdefault(name, []).append(given_to(node))
        elif isinstance(node, ast.ClassDef) and not functions_named(node.body, "__init__"):
            takers.setdefault(node.name, []).append(fields_of(node))
    for node in nodes:
        pairs = [(name_of(target), value) for target, value in given_in(node)]
        if isinstance(node, Function):
            pairs += defaults_of(node)
        elif isinstance(node, ast.Call):
            pairs += [(word.arg, word.value) for word in node.keywords if word.arg]
            for names in takers.get(called_name(node), []):
                pairs += given_by(node, names)
        for name, value in pairs:
            found.setdefault(name, []).append(value)
    return found


def names_given(node: ast.AST | None) -> list[str]:
    """Returns the names, and those of attributes, that a node gives a value."""
    return [name_of(target) for target, _ in given_in(node)]


def given_in(node: ast.AST | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields the names and attributes that a node gives a value, each with this: an item is a value of what it is put into."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            pairs = [*zip(targets, values)]
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.AsyncFor(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
            | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
        ):
            pairs = [(target, value)]
        case _:
            pairs = []
    yield from ((part, value) for target, value in pairs for part in parts_of_target(target))


def parts_of_target(target: ast.expr) -> Iterator[ast.expr]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            yield from (inner for part in parts for inner in parts_of_target(part))
        case ast.Starred(value=part) | ast.Subscript(value=part):
            yield from parts_of_target(part)
        case _:
            yield target


def names_called(path: str, function: Function) -> set[str]:
    """Returns the names by which a function of a file is called: an `__init__` by those of its class, and of classes of this."""
    if function.name != "__init__":
        return {function.name}
    classes: tuple[ast.ClassDef, ...] = nodes_of_file(path, ast.ClassDef)
    own = {each.name for each in classes if function in each.body}
    derived = {each.name for each in classes if any(name_of(base) in own for base in each.bases)}
    return {function.name, *own, *derived}


def defaults_of(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Yields the parameters that have a default, with this."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(positional), reversed(given.defaults))]
    pairs += [(name, value) for name, value in zip(given.kwonlyargs, given.kw_defaults) if value]
    yield from ((name.arg, value) for name, value in pairs)


def fields_of(kind: ast.ClassDef) -> list[str]:
    """Returns the names that a class declares with their types: what is called to make a dataclass takes these."""
    return [name_of(each.target) for each in kind.body if isinstance(each, ast.AnnAssign)]


def given_by(call: ast.Call, names: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
    """Yields the parameters that a call gives a value other than by name, with this: `**x` may give any that has none yet."""
    yield from zip(names, call.args)
    others = {*names[len(call.args) :]} - {word.arg for word in call.keywords}
    yield from ((name, word.value) for word in call.keywords if not word.arg for name in others)


def nodes_in_scope(frame: Frame) -> list[ast.AST]:
    """Returns the nodes of the function that the frame is in, or of the whole file."""
    function = function_at(frame)
    return list(ast.walk(function)) if function else list(nodes_of_file(frame.path))


def parameters(function: Function | None) -> list[str]:
    if function is None:
        return []
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def given_to(function: Function | None) -> list[str]:
    """Returns the parameters that a call gives a function: a method has its object or its class, which decides by itself."""
    return [name for name in parameters(function) if name not in ("self", "cls")]


def names_in(node: ast.AST | None) -> list[str]:
    return [each.id for each in nodes_under(node) if isinstance(each, ast.Name)]


def calls_in(node: ast.AST | None) -> list[ast.Call]:
    return [each for each in nodes_under(node) if isinstance(each, ast.Call)]


def returns_in(node: ast.AST | None) -> list[ast.Return]:
    """Returns the returns of a function, without those of functions that it defines."""
    nodes = list(nodes_under(node))
    inner = [each for each in nodes if isinstance(each, Function) and each is not node]
    of_inner = {each for function in inner for each in ast.walk(function)}
    return [each for each in nodes if isinstance(each, ast.Return) and each not in of_inner]


def values_under(nodes: Iterable[ast.AST], key: str) -> Iterator[ast.expr]:
    """Yields what is put into a dictionary under a key: by an assignment, or where the dictionary is written."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values)
            yield from (value for name, value in pairs if getattr(name, "value", None) == key)
        elif isinstance(node, ast.Assign):
            slices = [each.slice for each in node.targets if isinstance(each, ast.Subscript)]
            yield from (node.value for name in slices if getattr(name, "value", None) == key)


def calls_without_inner(function: Function | None) -> list[ast.Call]:
    """Returns the calls in a function, without those in functions that it defines."""
    inner = [each for each in nodes_under(function) if isinstance(each, Function)]
    others = {id(call) for each in inner if each is not function for call in calls_in(each)}
    return [call for call in calls_in(function) if id(call) not in others]


def computes_gradient(frame: Frame) -> bool:
    """Tells whether the function of a frame, and not one that it defines, computes gradients."""
    return bool(GRADIENTS & {*map(called_name, calls_without_inner(function_at(frame)))})


def calls_in_file(path: str) -> list[ast.Call]:
    return [*nodes_of_file(path, ast.Call)]


def name_of(node: ast.AST) -> str:
    """Returns a name, or that of an attribute; nothing for another expression."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def called_name(call: ast.Call) -> str:
    return name_of(call.func)


def is_tf_function(node: ast.expr) -> bool:
    """Tells whether this is `tf.function`, or a call of it."""
    return name_of(node.func if isinstance(node, ast.Call) else node) == "function"


def is_over_replicas(call: ast.Call, names: Collection[str]) -> bool:
    """Tells whether a call of one of these names is about replicas: TensorFlow and Python have others of the same names."""
    return called_name(call) in names and ast.unparse(call.func) not in OTHER_CALLS


def called_at(frame: Frame) -> list[str]:
    """Returns the names of the functions that a line calls."""
    return [called_name(call) for call in calls_in(statement_at(frame))]


def calls_at(stack: Stack, *names: str) -> bool:
    """Tells whether the innermost of these lines calls a function of one of these names."""
    return any({*names} & {*called_at(frame)} for frame in stack[:1])


def call_in_files(stack: Stack, is_it: Callable[[ast.Call], bool]) -> Stack:
    """Returns the line of the first call like this in the files of these lines; the lines themselves if there is none."""
    for path in dict.fromkeys(frame.path for frame in stack):
        calls = [each for each in calls_in_file(path) if is_it(each)]
        if calls:
            return (Frame(path, min(each.lineno for each in calls), ""), *stack)
    return stack


def argument_name(frame: Frame, functions: Collection[str], position: int = 0) -> str:
    """Returns the name that a line gives, or calls and gives, at this position to a call of one of these functions."""
    for call in calls_in(statement_at(frame)):
        if called_name(call) in functions and len(call.args) > position:
            return plain_name(call.args[position])
    return ""


def is_constant(value: ast.expr | None, wanted: object) -> bool:
    """Tells whether an expression is this constant, as it is written out."""
    return isinstance(value, ast.Constant) and value.value is wanted


def plain_name(value: ast.expr | None) -> str:
    """Returns the name that an expression is, or that it calls; nothing for another one."""
    value = value.func if isinstance(value, ast.Call) else value
    return value.id if isinstance(value, ast.Name) else ""


def argument_of(call: ast.Call, function: Function | None, name: str) -> ast.expr | None:
    """Returns what a call of a function gives for one of its parameters."""
    position = given_to(function).index(name)
    return keyword(call, name) or next(iter(call.args[position:]), None)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def first_argument(call: ast.Call, name: str) -> ast.expr | None:
    """Returns the first argument of a call, which may be given by this name."""
    return call.args[0] if call.args else keyword(call, name)


def arguments_of(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def with_keyword(stack: Stack, *names: str) -> Stack:
    """Returns the innermost line that gives an argument by one of these names, with its callers; the stack if none does."""
    for i, frame in enumerate(stack):
        for call in calls_in(statement_at(frame)):
            for value in filter(None, (keyword(call, name) for name in names)):
                return (frame._replace(line=value.lineno), *stack[i + 1 :])
    return stack


def targets_in(assignment: Assignment) -> list[ast.expr]:
    return assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]


def parts_of_targets(assignment: Assignment) -> list[ast.AST]:
    return [part for target in targets_in(assignment) for part in ast.walk(target)]


def changes_object(assignment: Assignment) -> bool:
    """Tells whether an assignment gives an attribute or an item of an object its value."""
    parts = parts_of_targets(assignment)
    return any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts)


def targets_of(assignment: Assignment) -> set[str]:
    return {name for target in targets_in(assignment) for name in names_in(target)}


def assignments_before(frame: Frame) -> list[Assignment]:
    """Returns the assignments above a line in its function, the last one first; `x: int` alone assigns nothing."""
    nodes = [node for node in nodes_in_scope(frame) if isinstance(node, Assignment) and node.value]
    above = [node for node in nodes if node.lineno < frame.line]
    return sorted(above, key=lambda node: node.lineno, reverse=True)


def leading_assignments(frame: Frame, names: Collection[str]) -> Iterator[Assignment]:
    """Yields the assignments above a line, in its function, that lead to the values of these names, the last one first."""
    leading = {*names}
    for assignment in assignments_before(frame):
        if targets_of(assignment) & leading:
            yield assignment
            leading |= {*names_in(assignment.value)}


def from_leading(stack: Stack, names: Collection[str], is_it: Callable[[ast.expr], bool]) -> Stack:
    """Returns the last line above that leads to the values of these names and assigns such a value; nothing if none does."""
    for assignment in leading_assignments(stack[0], names) if stack else ():
        if assignment.value and is_it(assignment.value):
            return (stack[0]._replace(line=assignment.lineno), *stack)
    return ()


def assignments_to(frame: Frame, name: str) -> list[Frame]:
    """Returns the lines above a frame, in its function, that assign to a name, the last one first."""
    found = [node for node in assignments_before(frame) if name in targets_of(node)]
    return [frame._replace(line=node.lineno) for node in found]


def last_assignment(frame: Frame, name: str) -> Frame | None:
    """Returns the last line above a frame, in its function, that assigns to a name."""
    return next(iter(assignments_to(frame, name)), None)


def assigned_value(frame: Frame | None) -> ast.expr | None:
    """Returns the value that a line assigns."""
    statement = statement_at(frame) if frame else None
    return statement.value if isinstance(statement, Assignment) else None


def same_statement(one: Frame, other: Frame) -> bool:
    """Tells whether two lines are one, or are the same code in one function."""
    statements = filter(None, (statement_at(one), statement_at(other)))
    is_same_code = len({*map(ast.dump, statements)}) == 1
    return one == other or (is_same_code and one.scope == other.scope)


def from_first(stack: Stack, fits: Callable[[Frame], object]) -> Stack:
    """Returns the frames from the first one on that fits; nothing if none does."""
    return tuple(itertools.dropwhile(lambda frame: not fits(frame), stack))


def from_only(stack: Stack, lines: Iterable[int]) -> Stack:
    """Puts the only one of these lines of a file first; otherwise the stack stays as it is."""
    found = {*lines}
    return (stack[0]._replace(line=found.pop()), *stack) if len(found) == 1 else stack


# How a loop ends


def from_loop(stack: Stack) -> Stack:
    """Puts the line first that ends the loop around a line, if only one can; otherwise the stack stays as it is."""
    for frame in stack:
        loop = loop_around(frame)
        if loop:
            lines = [*exits(loop)]
            return (frame._replace(line=lines[0]), *stack) if len(lines) == 1 else stack
    return stack


def loop_around(frame: Frame) -> Loop | None:
    """Returns the smallest loop in the function of a line that the line belongs to."""
    return min(loops_around(frame), key=height, default=None)


def loops_around(frame: Frame) -> list[Loop]:
    loops = [node for node in nodes_in_scope(frame) if isinstance(node, Loop)]
    return [each for each in loops if spans(each, frame.line)]


def outermost_loop(stack: Stack) -> Stack:
    """Returns the header of the outermost loop from which a line is reached; the same lines if there is none."""
    for i, frame in reversed([*enumerate(stack)]):
        if loops := loops_around(frame):
            return (frame._replace(line=max(loops, key=height).lineno), *stack[i:])
    return stack


def from_definer(stack: Stack) -> Stack:
    """Returns the frames from the one on that has not defined the function of the one before: it was called there."""
    while len(stack) > 1 and function_at(stack[1]) in functions_around(stack[0])[:-1]:
        stack = stack[1:]
    return stack


def from_iterated(stack: Stack) -> Stack:
    """Returns the line that returns what the loop around a line goes through, if a function of the file makes it."""
    loop = loop_around(stack[0])
    value: ast.expr | None = loop.iter if isinstance(loop, ast.For) else None
    assigned = last_assignment(stack[0], plain_name(value))
    for call in calls_in(assigned_value(assigned) or value):
        if (made := maker_of(call, stack[0], ())) != stack[0]:
            return (made, *stack)
    return stack


def in_one_loop(stack: Stack, other: Stack) -> bool:
    """Tells whether two lines are one, or in one loop of a function, which the same line has called."""
    if not stack or not other or stack[1:] != other[1:]:
        return False
    loop = loop_around(stack[0])
    return stack[0] == other[0] or (loop is not None and loop is loop_around(other[0]))


def is_in_loop_of(frame: Frame, other: Frame) -> bool:
    """Tells whether the smallest loop around another line goes through a line, too."""
    loop = loop_around(other)
    return loop is not None and frame.scope == other.scope and spans(loop, frame.line)


def exits(loop: Loop) -> Iterator[int]:
    """Yields the lines that can end a loop, but for what is written as a constant."""
    decides = loop.test if isinstance(loop, ast.While) else loop.iter
    if isinstance(decides, ast.Call) and called_name(decides) == "range":
        values: list[ast.expr] = decides.args
    else:
        values = [decides]
    if not all(isinstance(each, ast.Constant) for each in values):
        yield loop.lineno
    yield from exits_among(loop.body)


def exits_among(statements: Sequence[ast.stmt], condition: int = 0) -> Iterator[int]:
    """Yields the lines of the conditions under which these statements of a loop leave it, or else their own."""
    for each in statements:
        if isinstance(each, ast.Break | ast.Return | ast.Raise):
            yield condition or each.lineno
        elif isinstance(each, ast.If):
            yield from exits_among([*each.body, *each.orelse], each.lineno)
        elif isinstance(each, ast.With | ast.Try):
            handled = [line for handler in getattr(each, "handlers", ()) for line in handler.body]
            last = [*getattr(each, "orelse", ()), *getattr(each, "finalbody", ())]
            yield from exits_among([*each.body, *handled, *last], condition)


# Who decided


def from_maker(stack: Stack, made_at: Stack) -> Stack:
    """Returns the frames from the function on in which an object was put together: its use is decided there."""
    makers = {frame.scope for frame in made_at}
    return from_first(stack, lambda frame: frame.scope in makers) or stack


def from_argument(stack: Stack, functions: Collection[str]) -> Stack:
    """Returns the line that gave the first argument of these functions its value: an assignment, or what a caller passed."""
    if not stack:
        return ()
    name = argument_name(stack[0], functions)
    assigned = last_assignment(stack[0], name)
    if assigned:
        return (assigned, *stack)
    is_passed = name in parameters(function_at(stack[0]))
    return stack[1:] or stack if is_passed else stack


def from_caller(stack: Stack) -> Stack:
    """Returns the frames from the one on that decides: a function that only passes on its arguments decides nothing."""
    while len(stack) > 1:
        statement = statement_at(stack[0])
        passed = {*given_to(function_at(stack[0]))} & {*names_in(statement)}
        if not passed:
            break
        stack = stack[1:]
    return stack


def owners_at(frame: Frame, method: str) -> set[str]:
    """Returns the names of the objects whose method a line calls. One optimizer may have several."""
    calls = calls_in(statement_at(frame))
    functions = [call.func for call in calls if called_name(call) == method]
    return {name_of(each.value) for each in functions if isinstance(each, ast.Attribute)}


def from_owner(stack: Stack, method: str) -> Stack:
    """Returns the frames from the one on that chose the object whose method a line calls: its function may only get it."""
    is_given = owners_at(stack[0], method) & {*given_to(function_at(stack[0]))} if stack else ()
    return stack[1:] if is_given and len(stack) > 1 else stack


def from_decision(stack: Stack, functions: Collection[str]) -> Stack:
    """Returns the frames from the one on that decides what these functions get: who only passes on its arguments does not."""
    while len(stack) > 1 and passes_on(stack[0], functions):
        functions = [stack[0].function]
        stack = stack[1:]
    return stack


def from_batches(stack: Stack) -> Stack:
    """Returns the line that decides how many examples the batches have that are made here."""
    return from_argument(from_decision(stack, BATCHES), BATCHES)


def passes_on(frame: Frame, functions: Collection[str]) -> bool:
    """Tells whether a line gives a call of these functions, or else its outermost call, what its own function was given."""
    function, calls = function_at(frame), calls_in(statement_at(frame))
    given = {*given_to(function)}
    if function:
        given |= {each.arg for each in (function.args.vararg, function.args.kwarg) if each}
    named = [call for call in calls if called_name(call) in functions] or calls[:1]
    arguments = [each for call in named for each in (*call.args, *call.keywords)]
    passed = [
        each.value if isinstance(each, ast.Starred | ast.keyword) else each for each in arguments
    ]
    return any(isinstance(each, ast.Name) and each.id in given for each in passed)


def from_factory(stack: Stack) -> Stack:
    """Returns the frames from the caller on of functions that consist of this line only."""
    while len(stack) > 1 and is_factory(function_at(stack[0])):
        stack = stack[1:]
    return stack


def is_factory(function: Function | None) -> bool:
    if function is None:
        return False
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return len(body) == 1 and isinstance(body[0], ast.Return)


def attribute_called(frame: Frame) -> Frame | None:
    """Returns the only line that gives an attribute a function which a line calls, such as `self.loss = tf.reduce_mean`."""
    outermost = [call.func for call in calls_in(statement_at(frame))][:1]
    called = {name_of(each) for each in outermost if isinstance(each, ast.Attribute)}
    given = [
        each
        for each in nodes_of_file(frame.path, Assignment)
        if isinstance(each.value, ast.Name | ast.Attribute)
        and called
        & {name_of(target) for target in targets_in(each) if isinstance(target, ast.Attribute)}
    ]
    return frame._replace(line=given[0].lineno) if len(given) == 1 else None


def from_strategy(stack: Stack) -> Stack:
    """Returns the frames from the first function on that knows a strategy: there, a scope could have been entered.

    If none does, and for a line of the file itself, that is where a function that only makes something was called.
    """
    return from_first(stack, could_enter_scope) or from_factory(stack)


def could_enter_scope(frame: Frame) -> bool:
    function = function_at(frame)
    return function is None or knows_strategy(function)


def knows_strategy(code: Function | ast.ClassDef) -> bool:
    """Tells whether a function or a class names a strategy or a scope."""
    nodes = list(ast.walk(code))
    words = [each.id for each in nodes if isinstance(each, ast.Name)]
    words += [each.attr for each in nodes if isinstance(each, ast.Attribute)]
    words += [each.arg for each in nodes if isinstance(each, ast.arg)]
    return any("strategy" in word.lower() or word == "scope" for word in words)


def from_return(stack: Stack) -> Stack:
    """Returns the last `return` of the step that is given to `run`, in whichever frame that function is defined."""
    name = next(filter(None, map(step_given_at, stack)), "")
    for i, frame in enumerate(stack):
        defined = functions_named(nodes_in_scope(frame), name)
        ends = [each for function in defined for each in returns_in(function)]
        if ends:
            return (Frame(frame.path, ends[-1].lineno, name), *stack[i:])
        name = passed_from(stack[i:], name)[1] or name
    return stack


def step_given_at(frame: Frame) -> str:
    """Returns the name of the step that a line, or else its function, gives to `run`."""
    given = [name_of(call.args[0]) for call in calls_near(frame, ["run"]) if call.args]
    return next(filter(None, given), "")


def calls_near(frame: Frame, names: Collection[str]) -> list[ast.Call]:
    """Returns the calls of these names on a line, and then those in its function."""
    calls = [*calls_in(statement_at(frame)), *calls_in(function_at(frame))]
    return [call for call in calls if called_name(call) in names]


def line_of_loss(stack: Stack) -> Stack:
    """Returns the line that gave the loss its value of which a line computes the gradient."""
    return from_argument(stack, ("gradient",))


def from_parting(stack: Stack, others: Iterable[Stack]) -> Stack:
    """Returns the innermost frame that no other stack has behind the same frames; the whole stack if another is the same."""
    shared = (
        sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(stack, other)))
        for other in others
    )
    return stack[max(shared, default=0) :] or stack


# Who chose a function or a number that was passed on


def from_choice(stack: Stack) -> Stack:
    """Returns the line that chose what callers, or a `partial`, passed on to here, under whatever names."""
    names = names_chosen_at(stack[0]) if stack else []
    for name in names:
        chosen = choice_of(stack, name)
        if chosen:
            return (chosen, *stack)
    function = function_at(stack[0]) if stack else None
    return call_in_files(
        stack,
        lambda call: (
            called_name(call) == "partial"
            and (*map(name_of, call.args[:1]),) == (getattr(function, "name", ""),)
            and any(is_plain(keyword(call, name)) for name in names)
        ),
    )


def from_partial(stack: Stack) -> Stack:
    """Returns the line that makes the `partial` which a line calls without arguments: its options are chosen there."""
    calls = [each for each in calls_in(statement_at(stack[0])) if not (each.args or each.keywords)]
    names = [each.func.id for each in calls if isinstance(each.func, ast.Name)]
    given = values_by_name(stack[0].path)
    values = [value for name in names for value in given.get(name, [])]
    calls = [value for value in values if isinstance(value, ast.Call)]
    return from_only(stack, (call.lineno for call in calls if called_name(call) == "partial"))


def names_chosen_at(frame: Frame) -> list[str]:
    """Returns the names that a line reads, without those of the data for a layer that it makes and calls.

    An object of which it reads an attribute has chosen nothing, unless the line calls this.
    """
    statement = statement_at(frame)
    layers_called = [call for call in calls_in(statement) if isinstance(call.func, ast.Call)]
    data = {node for call in layers_called for each in call.args for node in ast.walk(each)}
    called = {node for call in calls_in(statement) for node in ast.walk(call.func)}
    read = [node for node in nodes_under(statement) if isinstance(node, ast.Attribute)]
    data |= {node.value for node in read if node not in called}
    return [
        node.id
        for node in nodes_under(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in data
    ]


def choice_of(stack: Stack, name: str) -> Frame | None:
    """Follows a parameter from caller to caller, to where a plain name or number was assigned to it."""
    stack, name = passed_from(stack, name)
    while stack:
        assigned = last_assignment(stack[0], name)
        if assigned:
            return assigned if is_plain(assigned_value(assigned)) else None
        stack, name = passed_from(stack, name)
    return None


def is_plain(value: ast.expr | None) -> bool:
    """Tells whether this is a name or a number; a switch such as `training=True` is no choice of a function or a number."""
    number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return number or isinstance(value, ast.Name | ast.Attribute)


def passed_from(stack: Stack, name: str) -> tuple[Stack, str]:
    """Returns the frames from which a parameter was passed, and the name that it has there.

    A function that was made in another one reads the parameters of that, which has returned and is in no frame.
    """
    takers = [each for each in functions_around(stack[0]) if name in given_to(each)]
    for taker in takers[-1:]:
        names = names_called(stack[0].path, taker)
        for i, frame in enumerate(stack):
            calls = calls_near(frame, names)
            if calls and taker not in functions_around(frame):
                return stack[i:], plain_name(argument_of(calls[0], taker, name))
    return (), ""


def into_called(stack: Stack) -> Stack:
    """Puts the line that calls `run` first, if it is in a function that is called here: a traced one has left no frame."""
    for name in called_at(stack[0]) if stack else []:
        for _, function in functions_in([stack[0].path], name):
            runs = [each for each in calls_in(function) if called_name(each) == "run"]
            if runs:
                return (Frame(stack[0].path, runs[0].lineno, name), *stack)
    return stack


# What a call is given as `**`


def from_contents(stack: Stack, paths: Sequence[str]) -> Stack:
    """Returns the line that puts together what a line gives as `**`, such as the parts of a checkpoint, or else the same lines.

    That is in the same function, in one that returns them, or in a caller, which may be in another of these files.
    """
    for i, frame in enumerate(stack):
        calls = calls_in(statement_at(frame))
        given = [word.value for call in calls for word in call.keywords if word.arg is None]
        if not given:
            return stack[i:]
        function, value = function_at(frame), given[0]
        name = value.id if isinstance(value, ast.Name) else ""
        if last_assignment(frame, name):
            return (maker_of(value, frame, paths), *stack[i:])
        if function and function.args.kwarg and name == function.args.kwarg.arg:
            continue  # the caller has them one by one, or as `**`
        if name in given_to(function):
            passed = argument_passed(stack[i:], name)
            return (maker_of(passed, stack[i + 1], paths), *stack[i + 1 :]) if passed else stack
        return (maker_of(value, frame, paths), *stack[i:])
    return stack


def argument_passed(stack: Stack, name: str) -> ast.expr | None:
    """Returns what the caller of a line gives for a parameter of its function, which may have another name there."""
    function = function_at(stack[0])
    names = names_called(stack[0].path, function) if function else set[str]()
    calls = [call for frame in stack[1:2] for call in calls_in(statement_at(frame))]
    calls = [call for call in calls if called_name(call) in names] or calls
    return next(filter(None, (argument_of(call, function, name) for call in calls)), None)


def maker_of(value: ast.expr | None, frame: Frame, paths: Sequence[str]) -> Frame:
    """Returns the line that makes a value: an assignment, or where the function that returns it puts it together.

    Of a dictionary that is made for each of some names, the line that lists these.
    """
    if isinstance(value, ast.DictComp):
        given = values_by_name(frame.path)
        listed = [
            each for name in names_in(value.generators[0].iter) for each in given.get(name, ())
        ]
        return frame._replace(line=listed[0].lineno) if len(listed) == 1 else frame
    if isinstance(value, ast.Name) and (assigned := last_assignment(frame, value.id)):
        return maker_of(assigned_value(assigned), assigned, paths)
    name = called_name(value) if isinstance(value, ast.Call) else ""
    for path, function in functions_in((frame.path, *paths), name):
        for returned in returns_in(function)[-1:]:
            line = Frame(path, returned.lineno, function.name)
            return [line, *assignments_to(line, plain_name(returned.value))][-1]
    return frame
