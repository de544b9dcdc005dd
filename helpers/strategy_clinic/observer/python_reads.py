"""Finds what a function reads of Python when it is traced: numbers, which optimizers, and random generators.

It reads source code and the attributes that objects have; it runs no code of the program.
"""

from __future__ import annotations

import ast
import collections
import functools
import linecache
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .events import Frame
from .patching import is_of_keras

MOST_FUNCTIONS, MOST_READS = 200, 300
UNKNOWN = object()
STEPS = {"train_step", "test_step", "predict_step"}
# Functions whose arguments do not become a part of the graph.
SHOWN = "print", "debug", "info", "warning", "error", "critical", "exception", "log"
RUN_IN_PYTHON = "py_function", "numpy_function", "from_generator"
MAKES_VARIABLES = "Variable", "add_weight", "seed"
OF_STATE = "seed", "get_state", "set_state", "getstate", "setstate", "default_rng", "RandomState"
FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SIZED = (list, dict, set, collections.deque)
Lookup = Callable[[], Any]  # the present value, or UNKNOWN


@dataclass(frozen=True)
class Held:
    """Which optimizer a name has. The optimizer itself may be gone."""

    kind: str
    identity: int

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class NumberRead:
    """A number that is not a constant of the source, or an optimizer: where it is read, and how to look it up again."""

    frame: Frame
    name: str  # as it is read, such as self.beta
    lookup: Lookup
    asks_whether_first: bool  # it is only compared with 0 or 1


@dataclass(frozen=True)
class RandomDraw:
    """A call of a generator of NumPy's or of Python's."""

    frame: Frame
    name: str
    generator: Any


@dataclass
class Reads:
    numbers: list[NumberRead] = field(default_factory=list)
    draws: list[RandomDraw] = field(default_factory=list)
    counted: dict[str, Frame] = field(default_factory=dict)  # where numbers are counted up


def reads_of(
    function: Any,
    is_own: Callable[[str], bool],
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
) -> Reads:
    """Returns what a function reads that is called so, and what the functions of the program read that it refers to."""
    walk = Walk(is_own)
    walk.follow(function, arguments=Arguments(tuple(arguments), dict(keywords or {})))
    walk.visit_all()
    for model in walk.models:
        for name in walk.steps:
            walk.add(getattr(type(model), name, None), model)
    walk.visit_all()
    return walk.reads


@dataclass(frozen=True)
class Arguments:
    """What is passed to a function, as far as it is known; UNKNOWN otherwise."""

    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def bound(self, node: Any, is_method: bool) -> dict[str, Any]:
        """Returns the objects by the names of the parameters. Numbers are left out: a tf.function traces each of them."""
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][is_method:]
        given = {**dict(zip(names, self.positional)), **self.keywords}
        return {
            name: value
            for name, value in given.items()
            if value is not UNKNOWN and not is_number(value)
        }


NOTHING = Arguments()


class Walk:
    def __init__(self, is_own: Callable[[str], bool]) -> None:
        self.is_own, self.reads = is_own, Reads()
        self.seen: set[tuple[int, int]] = set()
        # Functions, their `self`, and what is passed to them.
        self.waiting: list[tuple[types.FunctionType, Any, Arguments]] = []
        self.models: list[Any] = []  # that a function of Keras trains or evaluates
        self.steps: set[str] = set()  # the methods of theirs that it calls

    def visit_all(self) -> None:
        while self.waiting and len(self.seen) < MOST_FUNCTIONS:
            self.visit(*self.waiting.pop(0))

    def follow(self, value: Any, depth: int = 0, arguments: Arguments = NOTHING) -> None:
        """Adds the functions that a value consists of."""
        value = without_wrappers(value)
        if isinstance(value, types.MethodType):
            owner: Any = value.__self__
            is_target = (
                type(owner).__name__ == "TfMethodTarget"
            )  # in which a tf.function keeps `self`
            self.add(value.__func__, owner.target if is_target else owner, arguments)
        elif isinstance(value, types.FunctionType):
            self.add(value, None, arguments)
        elif isinstance(value, functools.partial):
            self.follow(value.func, depth + 1)
        elif isinstance(value, (list, tuple)) and depth < 2:
            for item in list(value)[:MOST_FUNCTIONS]:
                self.follow(item, depth + 1)
        elif is_named(value, "polymorphic_function", "Function"):
            self.follow(value.python_function, depth + 1, arguments)
        elif is_layer(value):
            self.follow_layer(value)

    def follow_layer(self, layer: Any) -> None:
        inner = getattr(layer, "_flatten_layers", None)
        for each in list(inner()) if inner else [layer]:
            self.add(getattr(type(each), "call", None), each)

    def follow_trained(self, model: Any) -> None:
        """Adds what `fit` traces of a model, without its steps."""
        self.follow_layer(model)
        self.models.append(model)
        self.add(getattr(type(model), "compute_loss", None), model)
        loss = attributes_of(model).get("loss")
        self.follow(loss)
        self.add(getattr(type(loss), "call", None), loss)
        self.follow_rate(attributes_of(model).get("optimizer"))

    def follow_rate(self, optimizer: Any) -> None:
        """Adds the function, or the schedule, that computes a learning rate."""
        rate = attributes_of(optimizer).get("_learning_rate")
        self.follow(rate)
        self.add(inherited(type(rate), "__call__"), rate)

    def add(self, function: Any, owner: Any, arguments: Arguments = NOTHING) -> None:
        function = without_wrappers(getattr(function, "python_function", function))
        key = id(function), id(owner)
        if isinstance(function, types.FunctionType) and key not in self.seen:
            self.seen.add(key)
            self.waiting.append((function, owner, arguments))

    def visit(self, function: types.FunctionType, owner: Any, arguments: Arguments) -> None:
        if self.is_own(function.__code__.co_filename):
            node = node_of(function.__code__)
            if node is not None:
                FunctionWalk(self, function, owner, node, arguments).run()
            return
        self.steps |= STEPS & names_in(function.__code__)
        for cell in function.__closure__ or ():  # of a library: what it was given
            value = content_of(cell)
            if is_layer(value) and hasattr(value, "train_step"):
                self.follow_trained(value)
            elif not isinstance(value, (list, tuple)):
                self.follow(value)


class FunctionWalk:
    """Reads the source of one function."""

    def __init__(
        self,
        walk: Walk,
        function: types.FunctionType,
        owner: Any,
        node: Any,
        passed: Arguments,
    ) -> None:
        self.walk, self.function, self.owner, self.node = walk, function, owner, node
        self.path = function.__code__.co_filename
        self.locals = local_names(node)
        arguments = [*node.args.posonlyargs, *node.args.args]
        self.self_name = arguments[0].arg if owner is not None and arguments else ""
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        self.cells = dict(zip(names, cells))
        assigned = assigned_names(node)
        passed_to = passed.bound(node, is_method=owner is not None)
        self.passed = {name: passed_to[name] for name in passed_to.keys() - assigned}

    def run(self) -> None:
        body = self.node.body if isinstance(self.node.body, list) else [self.node.body]
        for statement in body:
            self.read(statement, False)

    def read(self, node: ast.AST, first: bool) -> None:
        if isinstance(node, (ast.Raise, ast.Assert)):
            return
        if isinstance(node, ast.Call):
            self.read_call(node, first)
            return
        if isinstance(node, (ast.Assign, ast.AugAssign)) and (name := counted_in(node)):
            self.walk.reads.counted.setdefault(name, self.frame(node))
            for operand in operands_of(node.value):
                if ast.unparse(operand) != name:
                    self.read(operand, first)
            return
        first = first and not isinstance(node, ast.BinOp)  # a remainder is 0 again and again
        if isinstance(node, ast.If) and all(map(is_shown, node.body)) and not node.orelse:
            return
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            loaded = isinstance(node.ctx, ast.Load)
            value, lookup = self.resolve(node) if loaded else (UNKNOWN, None)
            if isinstance(node, ast.Attribute):
                self.read_optimizer(node.value)
            if value is not UNKNOWN and lookup is not None:
                self.found(node, value, lookup, first)
                return
        first = (
            first or isinstance(node, ast.Compare) and any(map(is_first_number, node.comparators))
        )
        for child in ast.iter_child_nodes(node):
            self.read(child, first)

    def read_call(self, node: ast.Call, first: bool) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in SHOWN or name in RUN_IN_PYTHON:
            return
        if name == "len" and isinstance(node.func, ast.Name):
            self.read_length(node, first)
        self.follow_with_arguments(node.func, node.args, node.keywords)
        if name == "run":  # strategy.run(function, args=(...))
            self.follow_run(node)
        generator = self.generator_of(node.func)
        if generator is not None and name not in OF_STATE:
            draw = RandomDraw(self.frame(node), ast.unparse(node.func), generator)
            self.walk.reads.draws.append(draw)
        draws = len(self.walk.reads.draws)
        for child in ast.iter_child_nodes(node):
            self.read(child, first)
        if name in MAKES_VARIABLES:  # their first values are meant to be drawn once
            del self.walk.reads.draws[draws:]

    def read_optimizer(self, node: ast.expr) -> None:
        """Adds the optimizer of which a function takes an attribute, such as a method."""
        value, lookup = self.resolve(node)
        if held_by(value) is not UNKNOWN and lookup is not None:
            self.walk.follow_rate(value)
            self.add_number(node, lambda: held_by(lookup()))

    def read_length(self, node: ast.Call, first: bool) -> None:
        """Adds the length of a list, which may grow, as a number."""
        for argument in node.args:
            value, lookup = self.resolve(argument)
            if isinstance(value, SIZED) and lookup is not None:
                self.found(node, len(value), functools.partial(length_of, lookup), first)

    def follow_with_arguments(
        self, function: ast.AST, arguments: Sequence[ast.AST], keywords: Sequence[ast.keyword]
    ) -> None:
        value, _ = self.resolve(function)
        if isinstance(value, (types.FunctionType, types.MethodType)) or is_named(
            value, "polymorphic_function", "Function"
        ):
            positional = tuple(self.resolve(each)[0] for each in arguments)
            named = {each.arg: self.resolve(each.value)[0] for each in keywords if each.arg}
            self.walk.follow(value, arguments=Arguments(positional, named))

    def follow_run(self, node: ast.Call) -> None:
        given = {each.arg: each.value for each in node.keywords}
        held = given.get("args", node.args[1] if len(node.args) > 1 else None)
        arguments = held.elts if isinstance(held, (ast.Tuple, ast.List)) else []
        for function in node.args[:1]:
            self.follow_with_arguments(function, arguments, [])

    def found(self, node: ast.AST, value: Any, lookup: Lookup, first: bool) -> None:
        if is_number(value):
            self.add_number(node, lookup, first)
        else:
            self.walk.follow(value)

    def add_number(self, node: ast.AST, lookup: Lookup, first: bool = False) -> None:
        if len(self.walk.reads.numbers) < MOST_READS:
            read = NumberRead(self.frame(node), ast.unparse(node), lookup, first)
            self.walk.reads.numbers.append(read)

    def frame(self, node: Any) -> Frame:
        return Frame(self.path, node.lineno, self.function.__name__)

    # Values

    def resolve(self, node: ast.AST) -> tuple[Any, Lookup | None]:
        """Returns what an expression is now and how to look it up again; UNKNOWN unless this runs no code."""
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id)
        if isinstance(node, ast.Attribute):
            owner, _ = self.resolve(node.value)
            return attribute_of(owner, node.attr) if owner is not UNKNOWN else (UNKNOWN, None)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            holder, _ = self.resolve(node.value)
            return item_of(holder, node.slice.value)
        return UNKNOWN, None

    def resolve_name(self, name: str) -> tuple[Any, Lookup | None]:
        if name == self.self_name:
            return self.owner, constant(UNKNOWN)
        if name in self.cells:
            cell = self.cells[name]
            return content_of(cell), functools.partial(content_of, cell)
        if name in self.passed:
            return self.passed[name], constant(UNKNOWN)
        if name in self.locals:
            return UNKNOWN, None
        return item_of(self.function.__globals__, name)

    def generator_of(self, node: ast.AST) -> Any:
        """Returns the random generator that a called function belongs to."""
        if isinstance(node, ast.Attribute):
            owner, _ = self.resolve(node.value)
            if is_generator(owner):
                return owner
        function, _ = self.resolve(node)
        owner = getattr(function, "__self__", None) if is_bound(function) else None
        return owner if is_generator(owner) else None


# Source


@functools.lru_cache(maxsize=64)
def functions_in(path: str, _lines: int) -> dict[tuple[str, int], Any]:
    """Returns the functions of a file by their names and first lines; None where two lambdas share a line."""
    try:
        nodes = list(ast.walk(ast.parse("".join(linecache.getlines(path)))))
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[str, int], Any] = {}
    for node in nodes:
        if isinstance(node, FunctionNode):
            decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
            key = getattr(node, "name", "<lambda>"), min([node.lineno, *decorators])
            found[key] = None if key in found else node
    return found


def node_of(code: types.CodeType) -> Any:
    lines = len(linecache.getlines(code.co_filename))
    return functions_in(code.co_filename, lines).get((code.co_name, code.co_firstlineno))


def local_names(node: ast.AST) -> set[str]:
    """Returns the names that a function binds, or a function in it; those are not looked up."""
    bound: set[str] = set()
    outer: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.arg):
            bound.add(each.arg)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            bound.add(each.id)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in each.names}
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)):
            bound |= {each.name} if each.name and each is not node else set()
        elif isinstance(each, (ast.Global, ast.Nonlocal)):
            outer |= {*each.names}
    return bound - outer


def assigned_names(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if not isinstance(each.ctx, ast.Load)}


def is_shown(statement: ast.stmt) -> bool:
    """Tells whether a statement only prints."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return isinstance(statement, ast.Pass)
    return getattr(call.func, "attr", getattr(call.func, "id", "")) in SHOWN


def counted_in(node: ast.Assign | ast.AugAssign) -> str:
    """Returns what a statement counts up: `n += 1`, or `n = n + 1`; the empty string if it counts nothing."""
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target)
    operands = [ast.unparse(each) for each in operands_of(node.value)]
    counted = [ast.unparse(each) for each in node.targets]
    return next((each for each in counted if len(operands) > 1 and each in operands), "")


def operands_of(value: ast.expr) -> list[ast.expr]:
    return [value.left, value.right] if isinstance(value, ast.BinOp) else [value]


def is_first_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, 1, None)


def names_in(code: types.CodeType) -> set[str]:
    """Returns the names that a function uses, and the functions in it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names}.union(*map(names_in, inner))


# Objects


def without_wrappers(function: Any) -> Any:
    """Returns the function, or the method, that decorators were put around."""
    while isinstance(function, types.FunctionType) and "__wrapped__" in vars(function):
        function = vars(function)["__wrapped__"]
    return function


def content_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return UNKNOWN


def constant(value: Any) -> Lookup:
    return lambda: value


def attributes_of(thing: Any) -> dict[str, Any]:
    """Returns the attributes that an object has itself, without asking its class."""
    try:
        own: dict[str, Any] = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own


def attribute_of(owner: Any, name: str) -> tuple[Any, Lookup | None]:
    if isinstance(owner, types.ModuleType):
        return item_of(vars(owner), name)
    if not isinstance(owner, type):
        if name in attributes_of(owner):
            return attributes_of(owner)[name], lookup_in(owner, name)
        method = inherited(type(owner), name)
        if isinstance(method, types.FunctionType):
            return types.MethodType(method, owner), constant(UNKNOWN)
        owner = type(owner)
    value = inherited(owner, name)
    return (value, lambda: inherited(owner, name)) if is_number(value) else (UNKNOWN, None)


def inherited(kind: type, name: str) -> Any:
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), UNKNOWN)


def lookup_in(owner: Any, name: str) -> Lookup | None:
    try:
        reference = weakref.ref(owner)
    except TypeError:
        return None
    return lambda: attributes_of(reference()).get(name, UNKNOWN)


def item_of(holder: Any, key: Any) -> tuple[Any, Lookup | None]:
    if type(holder) is not dict or key not in holder:
        return UNKNOWN, None
    return holder[key], lambda: holder.get(key, UNKNOWN)


def length_of(lookup: Lookup) -> Any:
    value = lookup()
    return len(value) if isinstance(value, SIZED) else UNKNOWN


def is_number(value: Any) -> bool:
    if type(value) in (int, float, bool):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.number, numpy.bool_))


def held_by(value: Any) -> Any:
    """Returns which optimizer this is; UNKNOWN if it is none."""
    kind = type(value)
    is_one = inherited(kind, "apply_gradients") is not UNKNOWN
    return Held(kind.__name__, id(value)) if is_one else UNKNOWN


def is_bound(value: Any) -> bool:
    return isinstance(value, (types.BuiltinFunctionType, types.MethodType))


def is_named(value: Any, module: str, name: str) -> bool:
    kind = type(value)
    return kind.__name__ == name and kind.__module__.endswith(module)


def is_layer(value: Any) -> bool:
    """Tells whether this is a layer or a model of Keras; a class of the program's own is one by its bases."""
    if value is UNKNOWN or isinstance(value, type):
        return False
    return any(each.__name__ == "Layer" and is_of_keras(each) for each in type(value).__mro__)


def is_generator(value: Any) -> bool:
    if isinstance(value, random.Random) or value is random:
        return True
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    kinds = numpy.random.Generator, numpy.random.RandomState
    return value is numpy.random or isinstance(value, kinds)


def state_of(generator: Any) -> object:
    """Returns what changes with each number that is drawn."""
    numpy = sys.modules.get("numpy")
    if isinstance(generator, random.Random):
        return generator.getstate()
    if generator is random:
        return random.getstate()
    if numpy is not None and isinstance(generator, numpy.random.Generator):
        return str(generator.bit_generator.state)
    held = generator.get_state(legacy=False)["state"]
    return held["pos"], bytes(held["key"])


def each_generator(draws: list[RandomDraw]) -> Iterator[RandomDraw]:
    """Returns one draw for each generator, the first."""
    seen: set[int] = set()
    for draw in draws:
        if id(draw.generator) not in seen:
            seen.add(id(draw.generator))
            yield draw
