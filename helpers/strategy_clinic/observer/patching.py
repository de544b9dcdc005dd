"""Replaces functions of other packages by functions that report their calls, and puts them back."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import random
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

INHERITED = object()  # stands for an attribute that a class has from another class


class WrongCall(Exception):
    """A call does not fit the function's signature; the function itself tells the program."""


class Call:
    """One call of a wrapped function."""

    def __init__(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.signature, self.args, self.kwargs = signature, args, kwargs
        self.state: Any = None  # what the handler before the call has for the handler after it

    @property
    def owner(self) -> Any:
        """The object whose method is called."""
        return self.args[0]

    @functools.cached_property
    def bound(self) -> inspect.BoundArguments:
        try:
            bound = self.signature.bind(*self.args, **self.kwargs)
        except TypeError:
            raise WrongCall from None
        bound.apply_defaults()
        return bound

    def __getitem__(self, name: str) -> Any:
        """Returns an argument by the name of its parameter, or the parameter's default."""
        return self.bound.arguments[name]

    def list_iterator(self, name: str) -> None:
        """Replaces an argument that can be read only once, such as `zip(...)`, by a list of its items."""
        try:
            argument = self[name]
        except WrongCall:
            return
        if isinstance(argument, Iterator):
            self.replace(name, list(argument))

    def replace(self, name: str, value: Any) -> None:
        """Gives the function another value of an argument."""
        self.bound.arguments[name] = value
        self.args, self.kwargs = self.bound.args, self.bound.kwargs


class ThreadState(threading.local):
    def __init__(self) -> None:
        self.groups: set[str] = set()  # of wrapped functions that are being called


Handler = Callable[[Call], None]
ResultHandler = Callable[[Any, Call], None]


class Patches:
    """Functions that are replaced, with what they were. `guard` calls a handler so that none of its errors gets out."""

    def __init__(self, guard: Callable[..., Any]) -> None:
        self.guard, self.thread = guard, ThreadState()
        self.replaced: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        self.replaced.append((owner, name, vars(owner).get(name, INHERITED), new))
        setattr(owner, name, new)
        name_by_place(new, owner, name)

    def restore(self) -> None:
        """Puts every function back that nobody else has replaced since."""
        while self.replaced:
            owner, name, plain, new = self.replaced.pop()
            if vars(owner).get(name) is not new:
                continue
            if plain is INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)

    def wrap(
        self,
        owner: Any,
        name: str,
        before: Handler | None = None,
        after: ResultHandler | None = None,
        *,
        group: str = "",
        listed: str = "",
        here: bool = False,
        unless: Callable[[Any], bool] | None = None,
    ) -> None:
        """Wraps a function where it is defined, or `here`, in the class itself.

        Only the outermost of several nested calls in one group is reported to `after`. An iterator that is given as the
        argument `listed` is turned into a list, so that a handler can read it, too. `unless`, which must not fail, gets
        the object of a method that is called very often, and says that this call needs no report.
        """
        definer = defining_class(owner, name)
        plain = vars(definer)[name]
        kind = next((each for each in (staticmethod, classmethod) if isinstance(plain, each)), None)
        function = plain.__func__ if kind else plain
        wrapper = self.wrapped(function, before, after, group, listed, unless)
        new = kind(wrapper) if kind else wrapper
        self.replace(owner if here else definer, name, new)

    def wrap_everywhere(
        self,
        package: str,
        function: Any,
        after: ResultHandler | None = None,
        before: Handler | None = None,
        group: str = "",
    ) -> None:
        """Wraps a function that several modules of a package export."""
        wrapper = self.wrapped(function, before, after, group)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == package:
                for key in [key for key, value in vars(module).items() if value is function]:
                    self.replace(module, key, wrapper)

    def wrapped(
        self,
        plain: Any,
        before: Handler | None,
        after: ResultHandler | None,
        group: str = "",
        listed: str = "",
        unless: Callable[[Any], bool] | None = None,
    ) -> Any:
        signature, guard, thread = inspect.signature(plain), self.guard, self.thread

        def short_wrapper(*args: Any, **kwargs: Any) -> Any:
            """What `wrapper` is where nothing comes after the call: eager programs call these functions most."""
            if unless and args and unless(args[0]):
                return plain(*args, **kwargs)
            call = Call(signature, args, kwargs)
            if listed:
                call.list_iterator(listed)
            guard(before, call)
            return plain(*call.args, **call.kwargs)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if unless and args and unless(args[0]):
                return plain(*args, **kwargs)
            call = Call(signature, args, kwargs)
            if listed:
                call.list_iterator(listed)
            if before:
                guard(before, call)
            outermost = group not in thread.groups
            if group:
                thread.groups.add(group)
            try:
                result = plain(*call.args, **call.kwargs)
            finally:
                if outermost:
                    thread.groups.discard(group)
            if outermost and after:
                guard(after, result, call)
            return result

        return as_plain(short_wrapper if before and not after else wrapper, plain)

    def wrap_property(self, owner: Any, name: str, after: Callable[[Any, Any], None]) -> None:
        """Wraps the getter of a property; `after` gets its value and the object."""
        definer = defining_class(owner, name)
        plain = vars(definer)[name]

        def read(instance: Any) -> Any:
            value = plain.fget(instance)
            self.guard(after, value, instance)
            return value

        getter = as_plain(read, plain.fget)
        self.replace(definer, name, property(getter, plain.fset, plain.fdel, plain.__doc__))

    def wrap_assignment(
        self,
        owner: Any,
        name: str,
        before: Callable[[Any, Any], None],
        after: Callable[[Any, Any], None],
    ) -> None:
        """Reports that an attribute of this name is set; the handlers get the object and the value."""
        definer = defining_class(owner, "__setattr__")
        plain, guard = vars(definer)["__setattr__"], self.guard

        def assign(instance: Any, attribute: str, value: Any) -> None:
            is_reported = attribute == name
            if is_reported:
                guard(before, instance, value)
            plain(instance, attribute, value)
            if is_reported:
                guard(after, instance, value)

        self.replace(definer, "__setattr__", as_plain(assign, plain))

    def wrap_new(self, kind: Any, after: Callable[[Any], None]) -> None:
        """Reports new objects of a class whose `__init__` its library inspects: Keras 3 reads a layer's arguments there."""
        plain = kind.__new__

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(cls) if plain is object.__new__ else plain(cls, *args, **kwargs)
            self.guard(after, made)
            return made

        self.replace(kind, "__new__", staticmethod(as_plain(new, plain)))


def as_plain(wrapper: Any, plain: Any) -> Any:
    """Returns the wrapper with the name and the signature of the plain function, which Keras 3 inspects, too."""
    functools.update_wrapper(wrapper, plain)
    wrapper.__signature__ = inspect.signature(
        plain
    )  # `inspect.getfullargspec` does not ask `__wrapped__`
    wrapper.autograph_info__ = {}  # as on TensorFlow's own functions: AutoGraph does not convert it
    return wrapper


def name_by_place(new: Any, owner: Any, name: str) -> None:
    """Gives a function the name by which pickle finds it, unless it is found by the name that it has.

    The name that it has is the plain function's, which may be defined elsewhere: `os.path.exists` in `genericpath`. By its place
    a process that is not observed finds the plain function.
    """
    function = getattr(new, "__func__", new)
    if not isinstance(function, FunctionType) or is_found(function):
        return
    is_class = isinstance(owner, type)
    function.__module__ = owner.__module__ if is_class else owner.__name__
    function.__qualname__ = f"{owner.__qualname__}.{name}" if is_class else name


def is_found(function: FunctionType) -> bool:
    """Tells whether a function is what its module has under its name."""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def defining_class(owner: Any, name: str) -> Any:
    """Returns the class that an attribute comes from; what is not a class defines its attributes itself."""
    return next(kind for kind in getattr(owner, "__mro__", [owner]) if name in vars(kind))


def is_of_keras(kind: Any) -> bool:
    """Tells whether a class is defined by Keras 3 or Keras 2."""
    return kind.__module__.partition(".")[0] in ("keras", "tf_keras")


class ImportWatch(importlib.abc.MetaPathFinder):
    """Calls an action before a module is imported, and one afterwards; modules are found and loaded as usual."""

    def __init__(
        self, actions: dict[str, Callable[[], None]], before: dict[str, Callable[[], None]]
    ) -> None:
        self.actions, self.before, self.searching = actions, before, False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self.actions or self.searching:
            return None
        self.searching = True  # in no other thread: Python has locked all imports
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module
            spec.loader.exec_module = functools.partial(self.execute, plain)  # type: ignore[method-assign] # of this loader only
        return spec

    def execute(self, plain: Callable[[ModuleType], None], module: ModuleType) -> None:
        if before := self.before.pop(module.__name__, None):
            before()
        state = random.getstate()
        plain(module)
        # What an import draws, such as that of rich, no process draws that is forked with the module.
        random.setstate(state)
        if action := self.actions.pop(module.__name__, None):
            action()
