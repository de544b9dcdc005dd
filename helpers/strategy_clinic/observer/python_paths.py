"""Replaces the functions of Python, SQLite and h5py that take paths by functions that take their places in a view."""

from __future__ import annotations

import functools
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

from .redirection import Argument, Redirected, Redirection, Use, put_everywhere, redirected
from .view import plain as system

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
TO_WRITE = set("wax+")  # letters of the modes of `open`
DATABASE = "", "-wal", "-shm", "-journal"  # the endings of the files of SQLite
MODE = 0o666  # of a new file, before the process's mask


def path(use: Use, follow: bool = True) -> tuple[Argument, ...]:
    return (Argument(0, "path", use, follow=follow),)


def moved(first: Use, second: Use) -> tuple[Argument, ...]:
    return Argument(0, "src", first, "src_dir_fd"), Argument(1, "dst", second, "dst_dir_fd")


OF_OS = {
    **dict.fromkeys(
        ("stat", "access", "chdir", "statvfs", "pathconf", "getxattr", "listxattr"), path(Use.READ)
    ),
    **dict.fromkeys(("lstat", "readlink"), path(Use.READ, follow=False)),
    **dict.fromkeys(
        ("truncate", "chmod", "chown", "utime", "setxattr", "removexattr", "chflags"),
        path(Use.CHANGE),
    ),
    **dict.fromkeys(("lchmod", "lchown", "lchflags"), path(Use.CHANGE, follow=False)),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), path(Use.MAKE)),
    **dict.fromkeys(("remove", "unlink"), path(Use.REMOVE)),
    "rmdir": path(Use.REMOVE_FOLDER),
    **dict.fromkeys(("rename", "replace"), moved(Use.MOVE, Use.MOVE_TO)),
    "link": moved(Use.CHANGE, Use.MAKE),
    "symlink": (Argument(1, "dst", Use.MAKE),),
}
OF_H5PY = {"r": Use.READ, "w": Use.OVERWRITE}  # by the mode; any other keeps what the file has


class PythonPaths:
    def __init__(self, redirection: Redirection) -> None:
        self.redirection, self.view = redirection, redirection.view

    def start(self) -> None:
        plain = {name: getattr(os, name) for name in OF_OS if hasattr(os, name)}
        new = {
            plain[name]: redirected(self.redirection, plain[name], OF_OS[name]) for name in plain
        }
        own: dict[Any, Any] = {
            os.open: self.open_descriptor,
            os.listdir: self.list_names,
            os.scandir: self.scan,
        }
        own |= {os.getcwd: self.working_folder, os.getcwdb: self.working_folder_bytes}
        wrappers = {each: Redirected(each, call, "os") for each, call in {**new, **own}.items()}
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            known |= {wrappers[each] for each in list(known) if each in wrappers}
        wrappers[io.open] = Redirected(io.open, self.open_file, "io")
        put_everywhere({id(each): wrapper for each, wrapper in wrappers.items()})

    # Files

    def open_descriptor(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        use = Use.READ
        if flags & WRITING:
            use = Use.OVERWRITE if flags & os.O_TRUNC and not flags & os.O_EXCL else Use.CHANGE
        argument = Argument(0, "path", use, follow=not flags & os.O_NOFOLLOW)
        opened = redirected(self.redirection, system.open, [argument])
        return int(opened(path, flags, *args, **kwargs))

    def open_file(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Opens a file at its place, by its own path, which is then its name."""
        if isinstance(file, int) or self.redirection.thread.busy:
            return system.open_file(file, mode, *args, **kwargs)
        opener = args[5] if len(args) > 5 else kwargs.get("opener")
        if opener:  # of the program's, which opens what it wants
            return self.open_by(opener, file, mode, args[:5], kwargs)
        use = (Use.OVERWRITE if "w" in mode else Use.CHANGE) if TO_WRITE & set(mode) else Use.READ
        place = self.redirection.place_of(file, use)
        if place is file:
            return system.open_file(file, mode, *args, **kwargs)
        return self.open_by(functools.partial(open_at, place), file, mode, args[:5], kwargs)

    def open_by(self, opener: Any, file: Any, mode: str, args: Any, kwargs: Any) -> Any:
        """Opens a file by another function than the system's, which alone says what is opened."""
        thread = self.redirection.thread

        def opened(name: Any, flags: int) -> int:
            thread.opening = False
            return int(opener(name, flags))

        thread.opening = True
        try:
            return system.open_file(file, mode, *args, **{**kwargs, "opener": opened})
        finally:
            thread.opening = False

    # Folders

    def working_folder(self) -> str:
        return self.view.logical(system.getcwd())

    def working_folder_bytes(self) -> bytes:
        return os.fsencode(self.working_folder())

    def list_names(self, path: Any = None) -> Any:
        merged = self.merged(path)
        if merged is None:
            return redirected(self.redirection, system.listdir, LISTED)(path)
        return [as_given(name, path) for name in merged[1]]

    def scan(self, path: Any = None) -> Any:
        merged = self.merged(path)
        if merged is None:
            return redirected(self.redirection, system.scandir, LISTED)(path)
        return Scan(merged[0], path, merged[1])

    def merged(self, path: Any) -> tuple[str, list[str]] | None:
        if self.redirection.thread.busy:
            return None
        with self.redirection.looking():
            given = "." if path is None else path
            text = given if isinstance(given, int) else os.fsdecode(given)
            return self.view.listing(text)

    # Other packages

    def watch_sqlite(self) -> None:
        connect = sys.modules["sqlite3"].connect
        call = redirected(self.redirection, connect, [])

        def connected(database: Any, *args: Any, **kwargs: Any) -> Any:
            return call(self.database_place(database), *args, **kwargs)

        put_everywhere({id(connect): Redirected(connect, connected, "sqlite3")})

    def database_place(self, database: Any) -> Any:
        """Returns the place of a database, which a URL may name; one in memory has no path."""
        text = os.fsdecode(database)
        if not text or text.startswith(":memory:"):
            return database
        file, mark, query = text.partition("?") if text.startswith("file:") else (text, "", "")
        head = "file:" if text.startswith("file:") else ""
        local = file[len(head) :]
        for ending in DATABASE[::-1]:
            if not ending or os.path.exists(local + ending):
                place = self.redirection.place_of(local + ending, Use.CHANGE)
        return f"{head}{place}{mark}{query}"

    def watch_h5py(self) -> None:
        kind = sys.modules["h5py"].File
        plain, redirection = kind.__init__, self.redirection

        def opened(file: Any, name: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
            use = OF_H5PY.get(mode or "r", Use.CHANGE)
            plain(file, redirection.place_of(name, use), mode, *args, **kwargs)

        kind.__init__ = opened


LISTED = path(Use.READ)


def open_at(place: Any, file: Any, flags: int) -> int:
    try:
        return int(system.open(place, flags, MODE))
    except OSError as error:
        error.filename = file
        raise


def as_given(name: str, path: Any) -> Any:
    return os.fsencode(name) if isinstance(path, bytes) else name


class Scan:
    """What `os.scandir` returns, for a folder that the view has changed."""

    def __init__(self, folder: str, given: Any, names: list[str]) -> None:
        self.entries = iter([Entry(folder, given, name) for name in names])

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self.entries)

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.entries = iter(())


class Entry:
    """What `os.DirEntry` is, of a folder by its resolved path; the program has given it by another path, or open."""

    def __init__(self, folder: str, given: Any, name: str) -> None:
        self.absolute = os.path.join(folder, name)
        self.name = as_given(name, given)
        is_open = isinstance(given, int)
        start = "." if given is None else os.fspath("" if is_open else given)
        self.path = os.path.join(start, self.name)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.absolute, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_symlink(self) -> bool:
        return self.has(stat.S_ISLNK, False)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.has(stat.S_ISDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self.has(stat.S_ISREG, follow_symlinks)

    def is_junction(self) -> bool:
        return False

    def has(self, kind: Any, follow: bool) -> bool:
        try:
            return bool(kind(self.stat(follow_symlinks=follow).st_mode))
        except FileNotFoundError:
            return False
