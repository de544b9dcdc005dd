"""Observes what a program remembers in Python when it saves, and before the next step: the numbers and texts in its names.

What a program keeps in Python is in no file unless it is written there. Another run that goes on from such a file shows what was
lost: before its first step it has other values than the whole run has after as many steps.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import inspect
import random
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from .context import Context
from .events import Held, ProgramState
from .optimizers import Optimizers
from .provenance import outer_frame
from .variables import arrays_of, is_in_replica, size_of, variable_in, weights_of

Found = dict[tuple[str, str, str], Held]
MOST_STATES = 80  # that are reported
MOST_VALUES = 400  # of one of them
MOST_ITEMS = 12  # of a list or a dictionary
MOST_OBJECTS = 100
DEPTH = 3  # of objects in objects
LONGEST_TEXT = 120
MOST_NUMBERS = 200_000  # in an array
MOST_BYTES = 1 << 20  # in the variables of an object
LONGEST_VALUES = 600
OF_LIBRARIES = "__", "_self_"  # how names begin that Python and TensorFlow give
PLAIN = (bool, int, float, str, type(None))
LISTS = (list, tuple, collections.deque)
NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
KEYS = (str, int)  # of a dictionary whose items are looked at
LOCALS = ".<locals>"
KEPT_BY_KERAS = {
    "Callback",
    "CallbackList",
}  # classes of Keras whose objects keep what a program has to save


class ProgramStates:
    def __init__(self, context: Context, optimizers: Optimizers) -> None:
        self.context, self.optimizers = context, optimizers
        optimizers.before_update.append(self.update_begins)
        self.known: Found = {}
        self.is_wanted = True  # before the next step
        self.at_call: tuple[int, Found] | None = None  # what was known before a call that may train
        self.others: set[object] = set()  # calls that have made no step
        self.steps: set[object] = set()  # and those that have

    def saved(self) -> None:
        """Reports what has changed since the state before."""
        self.is_wanted = True
        self.report(self.updates(), self.values, before_step=False)

    def call_begins(self, function: Any) -> None:
        """Looks at the program before a call that may be the next step: one like those that trained, or a new one."""
        self.at_call, call = None, self.call_of(function)
        is_possible = call in self.steps or call not in self.others
        if is_possible and self.context.counts["program states",] < MOST_STATES:
            self.at_call = self.updates(), self.values()

    def call_ended(self, function: Any, trained: bool) -> None:
        """Reports what the program had before a call that was a step."""
        (self.steps if trained else self.others).add(self.call_of(function))
        if trained and self.at_call:
            # An optimizer that makes its first step here may have been restored.
            made, found = self.at_call
            begun = next(iter(self.optimizers.first_steps.values()), 0)
            self.is_wanted = False
            self.report(max(made, begun), lambda: found, before_step=True)

    def update_begins(self) -> None:
        """Reports what the program has before a step that is no call, but lines that run eagerly."""
        import tensorflow as tf

        if self.is_wanted and tf.executing_eagerly() and not is_in_replica():
            self.is_wanted = False
            self.report(self.updates(), self.values, before_step=True)

    def call_of(self, function: Any) -> object:
        """Returns what calls on the same line of functions with one name have in common."""
        return self.context.provenance.call_site()[0], getattr(function, "__name__", "")

    def report(self, updates: int, values: Callable[[], Found], *, before_step: bool) -> None:
        if self.context.count("program states") > MOST_STATES:
            return
        found = values()
        changed = [held for key, held in found.items() if self.known.get(key) != held]
        self.known.update(found)
        self.context.emit(ProgramState(updates, tuple(changed), before_step))

    def updates(self) -> int:
        return max((each.steps for each in self.optimizers.states()), default=0)

    def values(self) -> Found:
        look = Look(self.context.provenance.is_own)
        frame = outer_frame()
        while frame is not None:
            code = frame.f_code
            is_function = code.co_flags & inspect.CO_OPTIMIZED
            if is_function and look.is_own(code.co_filename):
                look.frame(frame)
            elif code.co_name == "fit":  # of Keras, whose callbacks may be nowhere else
                for value in locals_of(frame).values():
                    look.follow(value, 0)
            frame = frame.f_back
        modules = self.context.provenance.modules()
        for path, names in modules:
            look.names(path, "", names)
        for path, names in modules:
            look.classes(path, names)
        return look.found


class Look:
    """Looks at the names of functions and modules, and at the objects of the program's classes that they lead to."""

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        self.is_own = is_own
        self.found: Found = {}
        self.seen: set[int] = set()
        self.kinds: set[type] = set()  # of the objects that have been looked at

    def frame(self, frame: FrameType) -> None:
        """Looks at the local names of a function that runs, or of a generator that waits."""
        code = frame.f_code
        self.names(code.co_filename, code.co_qualname, locals_of(frame))

    def names(self, path: str, holder: str, names: Mapping[str, Any], depth: int = 0) -> None:
        for name, value in list(names.items()):
            if not name.startswith(OF_LIBRARIES):
                self.look_at(path, holder, name, value, depth)

    def classes(self, path: str, names: Mapping[str, Any]) -> None:
        """Looks at the numbers of classes of which there are no objects."""
        for kind in [each for each in list(names.values()) if isinstance(each, type)]:
            if path_of(kind, self.is_own) == path and kind not in self.kinds:
                self.kinds.add(kind)
                for name, number in numbers_of(kind):
                    self.look_at(path, kind.__qualname__, name, number, 0)

    def look_at(self, path: str, holder: str, name: str, value: Any, depth: int) -> None:
        text = in_words(value)
        if text is not None:
            self.keep(Held(path, holder, name, text))
            return
        if depth > DEPTH:
            return
        for key, item in parts_of(value):
            self.look_at(path, holder, f"{name}{key}", item, depth + 1)
        if isinstance(value, LISTS):
            for item in list(value)[:MOST_ITEMS]:
                self.follow(item, depth)
        else:
            self.follow(value, depth)

    def keep(self, held: Held) -> None:
        key = held.path, held.holder, held.name
        number = 2
        while key in self.found and len(self.found) < MOST_VALUES:
            key = held.path, held.holder, f"{held.name} of number {number}"
            number += 1
        if len(self.found) < MOST_VALUES:
            self.found[key] = replace(held, name=key[2])

    def follow(self, thing: Any, depth: int) -> None:
        """Looks at what an object, a function or a generator keeps for the program."""
        if id(thing) in self.seen or len(self.seen) >= MOST_OBJECTS:
            return
        if isinstance(thing, types.FunctionType) and self.is_own(thing.__code__.co_filename):
            self.seen.add(id(thing))
            self.function(thing, depth + 1)
        if isinstance(thing, types.GeneratorType) and self.is_own(thing.gi_code.co_filename):
            self.seen.add(id(thing))
            if thing.gi_frame is not None and not thing.gi_running:
                self.frame(thing.gi_frame)
        path = None if isinstance(thing, SKIPPED) else path_of(type(thing), self.is_own)
        if path is None:
            return
        self.seen.add(id(thing))
        self.kinds.add(type(thing))
        hidden = hidden_names(type(thing))
        for name, value in list(attributes_of(thing)):
            if not name.startswith(hidden):
                self.look_at(path, type(thing).__qualname__, name, value, depth + 1)

    def function(self, function: types.FunctionType, depth: int) -> None:
        """Looks at the attributes of a function, and at the names that it has from the function around it."""
        path, around = function.__code__.co_filename, function.__qualname__.rpartition(LOCALS)[0]
        self.names(path, function.__qualname__, function.__dict__, depth)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if (path, around, name) not in self.found:
                with contextlib.suppress(ValueError):  # it has no value yet
                    self.look_at(path, around, name, cell.cell_contents, depth)


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Returns the items of a dictionary, of a named tuple or of a namespace, each with what comes after the name in a program."""
    if isinstance(value, NAMESPACES):
        items = [(f".{name}", item) for name, item in list(vars(value).items())]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [(f".{name}", item) for name, item in zip(value._fields, value)]
    elif isinstance(value, dict):
        items = [(f"[{key!r}]", item) for key, item in list(value.items()) if type(key) in KEYS]
    else:
        items = []
    return items[:MOST_ITEMS]


def numbers_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Yields the numbers that a class has for its objects."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, int | float) and not name.startswith(OF_LIBRARIES):
            yield name, value


def hidden_names(kind: type) -> tuple[str, ...]:
    """Returns how names begin that TensorFlow and Keras give: to every layer, and to every callback its model."""
    kinds = {each.__name__ for each in kind.__mro__}
    return OF_LIBRARIES + ("_",) * ("Layer" in kinds) + ("_model", "params") * ("Callback" in kinds)


SKIPPED = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def path_of(kind: type, is_own: Any) -> str | None:
    """Returns the file of a class whose objects are looked at: the program's, and Keras's own callbacks."""
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if isinstance(path, str) and is_own(path):
        return path
    of_keras = kind.__module__.partition(".")[0] in ("keras", "tf_keras")
    return "" if of_keras and any(each.__name__ in KEPT_BY_KERAS for each in kind.__mro__) else None


def attributes_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yields the attributes that an object has itself, and the numbers of its class; no code of the program is run."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        own = {}
    own = own if isinstance(own, dict) else {}
    yield from own.items()
    yield from ((name, number) for name, number in numbers_of(type(thing)) if name not in own)
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            descriptor = vars(kind).get(name)
            if isinstance(descriptor, types.MemberDescriptorType):
                try:
                    yield name, descriptor.__get__(thing)
                except AttributeError:
                    continue


def in_words(value: Any) -> str | None:
    """Returns a text that is equal for equal values: of plain values, short lists, arrays and the variables of an object."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, float) or numpy is not None and isinstance(value, numpy.floating):
        return f"{float(value):.6g}"
    if isinstance(value, PLAIN) or numpy is not None and isinstance(value, numpy.generic):
        return str(value)[:LONGEST_TEXT]
    if isinstance(value, (*LISTS, set)):
        return list_in_words(value)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return array_in_words(value)
    if isinstance(value, random.Random):
        return str(zlib.crc32(repr(value.getstate()).encode()))
    if numpy is not None and isinstance(value, numpy.random.Generator):
        return str(zlib.crc32(repr(value.bit_generator.state).encode()))
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return str(zlib.crc32(repr(value.get_state()).encode()))
    if is_tensor(value):
        return array_in_words(value.numpy())
    return variables_in_words(value)


def list_in_words(value: Any) -> str | None:
    """Returns a text of a list of plain values, of arrays or of variables; a named tuple has a name for each value."""
    numpy = sys.modules.get("numpy")
    last = list(value)[-MOST_ITEMS:]
    if hasattr(value, "_fields"):
        return None
    if last and numpy is not None and all(isinstance(item, numpy.ndarray) for item in last):
        return " and ".join(map(array_in_words, last))[:LONGEST_VALUES]
    if last and all(is_variable(item) for item in last):
        return "; ".join(filter(None, map(variables_in_words, last)))[:LONGEST_VALUES] or None
    items = [in_words(item) if isinstance(item, PLAIN) else None for item in last]
    if None in items:
        return None
    return f"{len(value)}: {', '.join(filter(None, items))}"[:LONGEST_TEXT]


def is_tensor(value: Any) -> bool:
    """Tells whether this is a tensor with values that NumPy can have, and not too many."""
    if not any(each.__name__ == "EagerTensor" for each in type(value).__mro__):
        return False
    return bool(value.dtype.is_numpy_compatible and value.shape.num_elements() <= MOST_NUMBERS)


def array_in_words(value: Any) -> str:
    import numpy as np

    if value.dtype.kind not in "fiub" or value.size > MOST_NUMBERS:
        return f"{value.dtype} {value.shape}"
    flat = np.asarray(value, dtype="float64").ravel()
    return f"{value.shape} {np.linalg.norm(flat):.6g} {flat.sum():.6g}"


def variables_in_words(value: Any) -> str | None:
    """Returns the values of a variable, or of the variables of a layer."""
    is_layer = any(each.__name__ == "Layer" for each in type(value).__mro__)
    weights = weights_of(value) if is_layer else [value] if is_variable(value) else []
    variables = [variable_in(weight) for weight in weights]
    if not variables or sum(map(size_of, variables)) > MOST_BYTES:
        return None
    arrays = [arrays_of(variable)[0] for variable in variables]
    return "; ".join(map(array_in_words, arrays))[:LONGEST_VALUES]


def is_variable(value: Any) -> bool:
    return any(each.__name__ == "Variable" for each in type(value).__mro__)


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Returns the local names of a function that runs. Before Python 3.13 the frame would keep their objects alive."""
    held = frame.f_locals
    names = dict(held)
    if type(held) is dict:
        held.clear()
    return names
