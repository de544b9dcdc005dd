"""Replaces functions that take paths by functions that take the place of each path in a view."""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .view import View

FILE_URL = "file://"
# The import system has functions of these modules for itself, and imports nothing from the view.
OF_IMPORTS = "posix", "nt"
OF_PATHS = "pathlib", "glob"


class Use(enum.Enum):
    """What a function does with a path."""

    READ = "reads, or looks for it"
    READ_PREFIX = "reads the files with this name and several endings"
    CHANGE = "writes to it, with what it has"
    OVERWRITE = "writes to it, without what it has"
    WRITE_PREFIX = "writes to files with this name and several endings"
    WRITE_TREE = "writes to a folder, with what it has"
    MAKE = "makes a file, a folder or a link of this name"
    REMOVE = "removes a file or a link"
    REMOVE_FOLDER = "removes a folder if it is empty"
    REMOVE_TREE = "removes a folder with what it has"
    MOVE = "moves it"
    MOVE_TO = "moves something there"


class Argument(NamedTuple):
    """A path among the arguments of a function. A number is an open file, whose path nobody asks for."""

    position: int
    name: str
    use: Use
    folder: str = "dir_fd"  # the argument with the open folder to which the path is relative
    follow: bool = True  # symbolic links, unless the call says otherwise


class Place(NamedTuple):
    given: Any
    place: Any
    use: Use


class ThreadState(threading.local):
    busy = False  # looking for a place: the functions are called for the view itself
    opening = False  # a file by the program's path, at a place in the view


class Redirection:
    def __init__(self, view: View) -> None:
        self.view, self.thread = view, ThreadState()

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        self.thread.busy = True
        try:
            yield
        finally:
            self.thread.busy = False

    def place_of(self, path: Any, use: Use, folder: int | None = None, follow: bool = True) -> Any:
        """Returns the place of a path, as text or as bytes; anything else is returned as it is."""
        if isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return path
        with self.looking():
            given = os.fspath(path)
            text = os.fsdecode(given)
            local = text[len(FILE_URL) :] if text.startswith(FILE_URL) else text
            if not local or "://" in local or "\0" in local:
                return path
            place = self.find(local, use, folder, follow)
        if place == local and folder is None:
            return path
        return os.fsencode(place) if isinstance(given, bytes) else place

    def find(self, path: str, use: Use, folder: int | None, follow: bool) -> str:
        view = self.view
        if use is Use.READ:
            return view.reading(path, folder, follow)
        if use is Use.READ_PREFIX:
            return view.reading_prefix(path)
        if use is Use.WRITE_PREFIX:
            return view.writing_prefix(path)
        if use in (Use.MOVE, Use.MOVE_TO, Use.WRITE_TREE):
            return view.writing_tree(path, folder)
        if use in (Use.CHANGE, Use.OVERWRITE):
            return view.writing(path, folder, follow, content=use is Use.CHANGE)
        if use is Use.MAKE:
            return view.making(path, folder)
        whole = use is not Use.REMOVE
        place = view.writing(path, folder, follow=False, content=whole, entry=True)
        if use is Use.REMOVE_FOLDER and view.is_in_view(place):
            view.require_empty(place, path)
        return place

    def done(self, places: Iterable[Place]) -> None:
        """Remembers what a call has removed."""
        with self.looking():
            for _, place, use in places:
                if use in (Use.REMOVE, Use.REMOVE_FOLDER, Use.REMOVE_TREE, Use.MOVE):
                    self.view.remove(os.fsdecode(place))
                if use is Use.MOVE_TO:
                    self.view.hide_below(os.fsdecode(place))

    def logical(self, path: Any) -> Any:
        """Returns the program's path of what a function has returned."""
        if isinstance(path, bytes):
            return os.fsencode(self.view.logical(os.fsdecode(path)))
        return self.view.logical(path) if isinstance(path, str) else path


class Redirected:
    """A function in place of another. It is no method of a class whose attribute it becomes, as the other is none."""

    def __init__(self, plain: Any, call: Any, home: str = "") -> None:
        functools.update_wrapper(self, plain)
        self.plain, self.call, self.__module__ = plain, call, home or plain.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __reduce__(self) -> str:
        """Returns the name by which `pickle` finds this object where it is in place of the other."""
        return str(self.plain.__qualname__)


def redirected(
    redirection: Redirection, plain: Callable[..., Any], arguments: Iterable[Argument]
) -> Callable[..., Any]:
    """Returns a function that calls another with the places of its paths."""
    thread, arguments = redirection.thread, tuple(arguments)
    reads = all(each.use in (Use.READ, Use.READ_PREFIX) for each in arguments)

    def call(*args: Any, **kwargs: Any) -> Any:
        if thread.busy or (reads and not redirection.view.is_used()):
            return plain(*args, **kwargs)
        placed, new = list(args), dict(kwargs)
        places = [replace_argument(redirection, each, placed, new) for each in arguments]
        with program_paths(places):
            result = plain(*placed, **new)
        redirection.done(filter(None, places))
        return result

    return call


def replace_argument(
    redirection: Redirection, argument: Argument, args: list[Any], kwargs: dict[str, Any]
) -> Place | None:
    """Puts a place where a path is among the arguments of a call."""
    position, name, use, folder_name, follow = argument
    holder: Any = args if position < len(args) else kwargs
    key = position if holder is args else name
    if holder is kwargs and name not in kwargs:
        return None
    given, folder = holder[key], kwargs.get(folder_name)
    follow = kwargs.get("follow_symlinks", follow)
    place = redirection.place_of(given, use, folder, follow)
    if place is given:
        return None
    holder[key] = place
    if folder is not None:
        kwargs[folder_name] = None
    return Place(given, place, use)


@contextlib.contextmanager
def program_paths(places: Iterable[Place | None]) -> Iterator[None]:
    """Raises the errors of a call with the paths that the program has given."""
    try:
        yield
    except OSError as error:
        for place in filter(None, places):
            if error.filename == place.place:
                error.filename = place.given
            if error.filename2 == place.place:
                error.filename2 = place.given
        raise


def put_everywhere(replaced: Mapping[int, Any]) -> None:
    """Puts functions in place of others, known by identity, wherever a module has them. Nothing puts them back."""
    modules = [module for name, module in list(sys.modules.items()) if name not in OF_IMPORTS]
    for owner in (*modules, *classes_with_functions()):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            function = value.__func__ if isinstance(value, staticmethod) else value
            if id(function) in replaced:
                setattr(owner, name, replaced[id(function)])


def classes_with_functions() -> Iterator[type]:
    """Yields the classes of the standard library that have functions of `os` as attributes, whichever the version has."""
    for module in filter(None, map(sys.modules.get, OF_PATHS)):
        yield from (value for value in vars(module).values() if isinstance(value, type))
