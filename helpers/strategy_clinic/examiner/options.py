"""Tells whether the user of a program can give a folder as an option: such a folder is no fault of the program."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from ..observer.events import Frame, OptionRead, Stack
from . import blame
from .recording import Recording

# Functions whose values are others in each process.
NEW_VALUES = {"time", "time_ns", "now", "utcnow", "today", "strftime", "getpid", "uuid4", "mkdtemp"}
ARGUMENTS = "argv"  # of `sys`: what the program reads there is an option by itself
NOTHING = {"", "False"}  # values of options that the user has not given
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

    def new_lines(self, node: ast.AST, steps: int = MOST_STEPS) -> list[int]:
        """Returns the lines that make a part of a value anew in each process, where no option can take their place."""
        if self.is_alternative(node):
            return []
        if blame.name_of(node) in NEW_VALUES:
            return [getattr(node, "lineno", 0)]
        found = [
            line for value in self.given(node, steps) for line in self.new_lines(value, steps - 1)
        ]
        children = [] if isinstance(node, ast.Attribute) else ast.iter_child_nodes(node)
        return [line for each in children for line in self.new_lines(each, steps)] + found

    def is_alternative(self, node: ast.AST) -> bool:
        """Tells whether this chooses between an option and another value, which is taken where the option is not given."""
        match node:
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(map(self.reads_option, values[:-1]))
            case ast.IfExp(test=test):
                return self.reads_option(test)
        return False

    def given(self, node: ast.AST, steps: int) -> list[ast.expr]:
        """Returns what a name or an attribute is given, but for what it gets only where an option is not given."""
        if not steps or not isinstance(node, ast.Name | ast.Attribute):
            return []
        values = self.values.get(blame.name_of(node), [])
        return [value for value in values if not self.is_conditional(value.lineno)]

    def is_conditional(self, line: int) -> bool:
        branches = blame.nodes_of_file(self.frame.path, ast.If)
        return any(blame.spans(each, line) and self.reads_option(each.test) for each in branches)

    def reads_option(self, node: ast.AST) -> bool:
        """Tells whether a value depends on an option that is not given."""
        nodes: list[ast.AST] = [node]
        known: set[str] = set()  # names whose values have been looked at
        for _ in range(MOST_STEPS + 1):
            if any(words_in(each) & self.options.unset for each in nodes):
                return True
            names = {blame.name_of(part) for each in nodes for part in ast.walk(each)} - known
            nodes = [value for name in names for value in self.values.get(name, [])]
            known |= names
        return False

    def loads_option(self, loads: Collection[str]) -> bool:
        """Tells whether an option that is not given decides about a branch of the file that calls one of these functions."""
        branches = blame.nodes_of_file(self.frame.path, ast.If)
        called = [
            each for each in branches if {*map(blame.called_name, calls_under(each))} & {*loads}
        ]
        return any(self.reads_option(each.test) for each in called)


def calls_under(branch: ast.If) -> Iterator[ast.Call]:
    return (call for each in branch.body for call in blame.calls_in(each))


def words_in(node: ast.AST) -> set[str]:
    """Returns names, attributes, and texts: an option may be a key of a dictionary."""
    texts = {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    return texts | {blame.name_of(each) for each in ast.walk(node)}


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
