"""Hooks in the functions of other packages: they tell us of a call, and pass it on as it is. Runs in the reader's process."""

import functools
import importlib.abc
import importlib.util
import sys
import types

from .notes import THREAD, acted, guarded

REPLACED: list = []  # each function that tells us, as it was
INHERITED = object()  # stands for what a class had from another, and not of its own


def hook(owner, name: str, before=None, after=None, level=""):
    """Has a function tell us when it is called, and what came of it. It keeps its name, module and signature.

    With a level, only the outermost call of that level tells what came of it.
    """
    plain = vars(owner)[name]

    @functools.wraps(plain)
    def watched(*args, **options):
        guarded(before, args, options)
        levels = vars(THREAD)
        outermost = not levels.get(level)
        levels[level] = bool(level)
        try:
            result = plain(*args, **options)
        finally:
            levels[level] = bool(level) and not outermost
        if outermost:
            guarded(after, result, args, options)
        return result

    watched.autograph_info__ = {}  # like TensorFlow's own functions, AutoGraph does not copy it
    replace_in(owner, name, watched)


def replace_in(owner, name: str, new):
    REPLACED.append((owner, name, vars(owner).get(name, INHERITED)))
    setattr(owner, name, new)


def unhook():
    """Everything as it was; the last that was put in is the first to go."""
    while REPLACED:
        owner, name, plain = REPLACED.pop()
        delattr(owner, name) if plain is INHERITED else setattr(owner, name, plain)


def hook_property(owner, name: str, after):
    plain = vars(owner)[name]

    @functools.wraps(plain.fget)
    def read(self):
        result = plain.fget(self)
        guarded(after, result, self)
        return result

    read.autograph_info__ = {}
    replace_in(owner, name, property(read, plain.fset, plain.fdel, plain.__doc__))


def hook_new(kind, after):
    """Objects of a class whose `__init__` is read by its library: Keras 3 takes the names of a layer's arguments from there."""
    plain = kind.__new__

    @functools.wraps(plain)
    def new(cls, *args, **options):
        made = plain(cls) if plain is object.__new__ else plain(cls, *args, **options)
        guarded(after, made)
        return made

    replace_in(kind, "__new__", staticmethod(new))


def hook_everywhere(package: str, function, after):
    """A function that several modules of a package hand on."""
    holder = types.SimpleNamespace(**{function.__name__: function})
    hook(holder, function.__name__, None, after)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == package:
            for key, value in list(vars(module).items()):
                if value is function:
                    replace_in(module, key, vars(holder)[function.__name__])


def definer(kind, name: str):
    """The class that a method of this one comes from."""
    return next(each for each in kind.__mro__ if name in vars(each))


class Finder(importlib.abc.MetaPathFinder):
    """Lets modules be found as ever, and acts once one of them has been imported."""

    def __init__(self, actions: dict):
        self.actions, self.looking = actions, False

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = functools.partial(self.executed, spec.loader.exec_module)
        return spec

    def executed(self, plain, module):
        plain(module)
        action = self.actions.pop(module.__name__, None)
        if action:
            acted(action)
