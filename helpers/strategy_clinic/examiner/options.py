"""Tells whether the user of a program can give a folder as an option: such a folder is no fault of the program."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

from ..observer.events import Frame, OptionRead, Stack
from . import blame
from .recording import Recording

# Functions whose values are others in each process.
NEW_VALUES = {"time", "time_ns", "now", "utcnow", "today", "strftime", "getpid", "uuid4", "mkdtemp"}
ARGUMENTS = "argv"  # of `sys`: what the program reads there is an option by itself
NOTHING = {"", "False"}  # values of options that the user has not given
NAMES = ast.Name | ast.Attribute
MOST_STEPS = 4  # through how many names a value is followed


class Options:
    """The options of a run, as its program has parsed and read them."""

    def __init__(self, run: Recording) -> None:
        self.values = {read.name: read.value for read in run.of(OptionRead)}  # the last of each

    @cached_property
    def unset(self) -> set[str]:
        return {ARGUMENTS, *(name for name, value in self.values.items() if value in NOTHING)}

    def given_otherwise(self, other: Options, place: str) -> bool:
        """Tells whether a path begins with the value of an option which is another one in the other run: a new default."""
        return any(
            os.path.isabs(value) and is_below(place, value) and other.values.get(name) != value
            for name, value in self.values.items()
        )


def is_below(path: str, folder: str) -> bool:
    path, folder = os.path.normpath(path), os.path.normpath(folder)
    return path == folder or path.startswith(folder + os.sep)


class Origin:
    """Where the values of some expressions of a file come from, as far as its text and the options of a run tell."""

    def __init__(self, frame: Frame, options: Options) -> None:
        self.frame, self.options = frame, options
        self.values = blame.values_by_name(frame.path)

    def new_lines(self, node: ast.AST) -> list[int]:
        """Returns the lines that make a part of a value anew in each process, where no option can take their place."""
        parts = self.reached(node, self.always_used, lambda value: not self.is_conditional(value))
        calls = [part for part in parts if isinstance(part, ast.Call)]
        return [call.lineno for call in calls if blame.called_name(call) in NEW_VALUES]

    def reached(
        self,
        node: ast.AST,
        parts_of: Callable[[ast.AST], Iterable[ast.AST]],
        counts: Callable[[ast.expr], bool] = lambda value: True,
    ) -> Iterator[ast.AST]:
        """Yields the parts of a value and, through some names, those of what its names are given; of each name once."""
        nodes, known = [node], {""}
        for _ in range(MOST_STEPS + 1):
            parts = [part for each in nodes for part in parts_of(each)]
            yield from parts
            names = [name for name in dict.fromkeys(map(blame.name_of, parts)) if name not in known]
            nodes = [
                value for name in names for value in self.values.get(name, []) if counts(value)
            ]
            known.update(names)

    def always_used(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the parts of a value without those in whose place an option is taken; a name, of `a.b.c` that of `c`, is one."""
        if self.is_alternative(node):
            return
        yield node
        is_name = isinstance(node, ast.Attribute) and isinstance(node.value, NAMES)
        for each in () if is_name else ast.iter_child_nodes(node):
            yield from self.always_used(each)

    def is_alternative(self, node: ast.AST) -> bool:
        """Tells whether this chooses between an option and another value, which is taken where the option is not given."""
        match node:
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(map(self.reads_option, values[:-1]))
            case ast.IfExp(test=test):
                return self.reads_option(test)
        return False

    def is_conditional(self, value: ast.expr) -> bool:
        """Tells whether an option that is not given decides whether a value is assigned."""
        return any(blame.spans(each, value.lineno) for each in self.optional)

    @cached_property
    def optional(self) -> list[ast.If]:
        """The branches about which an option decides that is not given."""
        branches: tuple[ast.If, ...] = blame.nodes_of_file(self.frame.path, ast.If)
        return [each for each in branches if self.reads_option(each.test)]

    def reads_option(self, node: ast.AST) -> bool:
        """Tells whether a value depends on an option that is not given."""
        return any(word_of(part) in self.options.unset for part in self.reached(node, ast.walk))

    def loads_option(self, loads: Collection[str]) -> bool:
        """Tells whether an option that is not given decides about a branch of the file that calls one of these functions."""
        calls = [call for each in self.optional for call in calls_under(each)]
        return any(blame.called_name(call) in loads for call in calls)


def calls_under(branch: ast.If) -> Iterator[ast.Call]:
    return (call for each in branch.body for call in blame.calls_in(each))


def word_of(node: ast.AST) -> str:
    """Returns a name, that of an attribute, or a text: an option may be a key of a dictionary."""
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) else blame.name_of(node)


Expressions = Callable[[Frame], Sequence[ast.expr]]


def line_made_anew(stack: Stack, options: Options, used: Expressions) -> Frame | None:
    """Returns the line that makes a value anew in each process for what these lines use; None where an option can give it."""
    for frame in stack:
        origin = Origin(frame, options)
        lines = [line for each in used(frame) for line in origin.new_lines(each)]
        if lines:
            return frame._replace(line=lines[0])
    return None


def can_be_given(stack: Stack, options: Options, used: Expressions) -> bool:
    """Tells whether what these lines use depends on an option that is not given."""
    origins = [(Origin(frame, options), used(frame)) for frame in stack]
    return any(origin.reads_option(each) for origin, values in origins for each in values)
