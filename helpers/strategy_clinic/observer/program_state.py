"""Observes what a program remembers in Python when it saves, and at its end: the numbers and texts in its names and its objects.

What a program keeps in Python is in no file unless it is written there. Another run that goes on from such a file shows what was
lost: it has other values after as many steps.
"""

from __future__ import annotations

import collections
import inspect
import random
import sys
import types
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from .context import Context
from .events import Held, ProgramState
from .optimizers import Optimizers
from .provenance import outer_frame
from .variables import arrays_of, size_of, variable_in, weights_of

MOST_STATES = 40  # that are reported
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
KEPT_BY_KERAS = {
    "Callback",
    "CallbackList",
}  # classes of Keras whose objects keep what a program has to save


class ProgramStates:
    def __init__(self, context: Context, optimizers: Optimizers) -> None:
        self.context, self.optimizers = context, optimizers
        self.known: dict[tuple[str, str, str], Held] = {}

    def saved(self) -> None:
        """Reports what has changed since the save before."""
        if self.context.count("program states") > MOST_STATES:
            return
        found = self.values()
        changed = [held for key, held in found.items() if self.known.get(key) != held]
        self.known.update(found)
        self.context.emit(ProgramState(self.updates(), tuple(changed)))

    def updates(self) -> int:
        return max((each.steps for each in self.optimizers.states()), default=0)

    def values(self) -> dict[tuple[str, str, str], Held]:
        look = Look(self.context.provenance.is_own)
        frame = outer_frame()
        while frame is not None:
            code = frame.f_code
            is_function = code.co_flags & inspect.CO_OPTIMIZED
            if is_function and self.context.provenance.is_own(code.co_filename):
                look.names(code.co_filename, code.co_qualname, locals_of(frame))
            elif code.co_name == "fit":  # of Keras, whose callbacks may be nowhere else
                for value in locals_of(frame).values():
                    look.follow(value, 0)
            frame = frame.f_back
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.context.provenance.is_own(path):
                look.names(path, "", vars(module))
        return look.found


class Look:
    """Looks at the names of functions and modules, and at the objects of the program's classes that they lead to."""

    def __init__(self, is_own: Any) -> None:
        self.is_own = is_own
        self.found: dict[tuple[str, str, str], Held] = {}
        self.seen: set[int] = set()

    def names(self, path: str, holder: str, names: Mapping[str, Any]) -> None:
        for name, value in list(names.items()):
            if not name.startswith(OF_LIBRARIES):
                self.look_at(path, holder, name, value, 0)

    def look_at(self, path: str, holder: str, name: str, value: Any, depth: int) -> None:
        text = in_words(value)
        if text is not None:
            self.keep(Held(path, holder, name, text))
        elif depth <= DEPTH and isinstance(value, (*LISTS, dict)):
            items = value.values() if isinstance(value, dict) else value
            for item in list(items)[:MOST_ITEMS]:
                self.follow(item, depth)
        elif depth <= DEPTH:
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
        """Looks at the attributes of an object that keeps something for the program."""
        if id(thing) in self.seen or len(self.seen) >= MOST_OBJECTS or isinstance(thing, SKIPPED):
            return
        path = path_of(type(thing), self.is_own)
        if path is None:
            return
        self.seen.add(id(thing))
        hidden = hidden_names(type(thing))
        for name, value in list(attributes_of(thing)):
            if not name.startswith(hidden):
                self.look_at(path, type(thing).__qualname__, name, value, depth + 1)


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
    """Yields the attributes that an object has itself; no code of the program is run."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        own = {}
    yield from own.items() if isinstance(own, dict) else ()
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
    return variables_in_words(value)


def list_in_words(value: Any) -> str | None:
    items = [
        in_words(item) if isinstance(item, PLAIN) else None for item in list(value)[-MOST_ITEMS:]
    ]
    if None in items:
        return None
    return f"{len(value)}: {', '.join(filter(None, items))}"[:LONGEST_TEXT]


def array_in_words(value: Any) -> str:
    import numpy as np

    if value.dtype.kind not in "fiub" or value.size > MOST_NUMBERS:
        return f"{value.dtype} {value.shape}"
    flat = np.asarray(value, dtype="float64").ravel()
    return f"{value.shape} {np.linalg.norm(flat):.6g} {flat.sum():.6g}"


def variables_in_words(value: Any) -> str | None:
    """Returns the values of a variable, or of the variables of a layer."""
    kinds = [each.__name__ for each in type(value).__mro__]
    weights = weights_of(value) if "Layer" in kinds else [value] if "Variable" in kinds else []
    variables = [variable_in(weight) for weight in weights]
    if not variables or sum(map(size_of, variables)) > MOST_BYTES:
        return None
    arrays = [arrays_of(variable)[0] for variable in variables]
    return "; ".join(map(array_in_words, arrays))[:LONGEST_VALUES]


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Returns the local names of a function that runs. Before Python 3.13 the frame would keep their objects alive."""
    held = frame.f_locals
    names = dict(held)
    if type(held) is dict:
        held.clear()
    return names
