"""Traced functions that a program calls, and whether each call traces anew. Runs in the reader's process."""

import types
import weakref

from .notes import asked_by_program, note, way, where
from .patching import hook

SITES: dict = {}  # by line of the program, why its calls have traced; None once a graph was used again
TRACES = weakref.WeakKeyDictionary()  # how often a traced function had been traced when last called
TAKEN = weakref.WeakSet()  # Python functions that were arguments
# Calls, all of which traced, after which it is told. A function may be new for a reason, a few times.
ENOUGH = {"a Python number": 5, "a Python function": 20, "a tf.function": 20}


def watch_tracing():
    import tensorflow as tf

    hook(type(tf.function(lambda: None)), "__call__", None, function_called)


def function_called(_, args, options):
    import tensorflow as tf

    line = way()[0]
    causes = SITES.setdefault(line, [])
    if causes is None or not tf.executing_eagerly() or not asked_by_program():
        return
    function, traced = args[0], args[0].experimental_get_tracing_count()
    known = TRACES.get(function)
    if traced == known:
        SITES[line] = None
        return
    TRACES[function] = traced
    causes.append((cause(known is None, args[1:], options), numbers_in(args[1:], options)))
    tell_enough(causes, args[1:])


def cause(fresh: bool, args, options) -> str:
    """Why this call could use no graph of an earlier one, as far as it can be seen."""
    import tensorflow as tf

    made = [
        each for each in tf.nest.flatten((args, options)) if isinstance(each, types.FunctionType)
    ]
    new = [each for each in made if each not in TAKEN]
    TAKEN.update(new)
    return "a tf.function" if fresh else "a Python function" if new else "a Python number"


def numbers_in(args, options) -> tuple:
    import tensorflow as tf

    return tuple(each for each in tf.nest.flatten((args, options)) if type(each) in (int, float))


def tell_enough(causes: list, args):
    """Once, when enough calls have traced, all but the first of them for one cause."""
    kind = causes[-1][0]
    alike = all(each == kind for each, _ in causes[1:])
    others = len({numbers for _, numbers in causes}) == len(causes) or kind != "a Python number"
    if alike and others and len(causes) == ENOUGH[kind]:
        note("retraced", calls=len(causes), new=kind, place=argument_of(args), at=where())


def argument_of(args) -> int:
    """The first of the arguments that has numbers in it."""
    return next((i for i, each in enumerate(args) if numbers_in(each, ())), 0)
