"""Finds the functions of the program that a model is compiled with, wherever they are defined and however they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CodeType, MethodType
from typing import Any

from .events import Definition, Frame, Use

STEPS = "train_step", "test_step"
WRAPS = "python_function", "fn", "_fn", "func", "__func__", "__wrapped__"
MOST_WRAPPED = 8
UNNAMED = ""


def definitions(
    model: Any, given: dict[str, Any], is_own: Callable[[str], bool]
) -> Iterator[Definition]:
    """Yields what the program defines itself of what `compile` is given, and of the steps of the model's class."""
    import tensorflow as tf

    for use, names in ((Use.LOSS, ("loss",)), (Use.METRIC, ("metrics", "weighted_metrics"))):
        for each in tf.nest.flatten([given.get(name) for name in names]):
            method = "call" if use is Use.LOSS else "result"
            yield from definition(use, name_of(each), each, method, is_own)
    for name in STEPS:
        yield from definition(Use.STEP, name, getattr(type(model), name, None), "", is_own)


def definition(
    use: Use, name: str, thing: Any, method: str, is_own: Callable[[str], bool]
) -> Iterator[Definition]:
    for code in (code_of(thing), code_of(getattr(type(thing), method, None))):
        if code is not None and is_own(code.co_filename):
            yield Definition(use, name, Frame(code.co_filename, code.co_firstlineno, code.co_name))
            return


def name_of(thing: Any) -> str:
    """Returns the name under which Keras reports a metric: of an object, or of a function."""
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    return name if isinstance(name, str) else UNNAMED


def code_of(thing: Any) -> CodeType | None:
    """Returns the code of a function, also of one in a `partial`, a method, or an object that keeps a function."""
    for _ in range(MOST_WRAPPED):
        code = getattr(thing, "__code__", None)
        inner = next((each for each in WRAPS if is_kept(thing, each)), None)
        if inner is None:
            return code if isinstance(code, CodeType) else None
        thing = getattr(thing, inner)
    return None


def is_kept(thing: Any, name: str) -> bool:
    """Tells whether an attribute is what a wrapper calls; a class may have a method of such a name."""
    if isinstance(thing, (functools.partial, MethodType)):
        return name in ("func", "__func__") and hasattr(thing, name)
    return name in getattr(thing, "__dict__", {})
