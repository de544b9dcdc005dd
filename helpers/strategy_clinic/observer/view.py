"""Defines a copy-on-write view of the file system: what is written outside of some folders is kept in one folder.

A path of the program's has its file there once the program has written to it, and is read from where it is otherwise.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

MOST_LINKS = 40  # in one path
UNTOUCHED = "/proc", "/sys", "/dev/fd"  # files of the kernel
KEPT = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK  # what the view can hold: no device, pipe or socket
F_GETPATH, LONGEST_PATH = 50, 1024  # of fcntl(2) on macOS
# The functions, before any of them is replaced; a module's own would be.
plain: Any = SimpleNamespace(**vars(os), open_file=io.open)


class View:
    """The view in a folder. `own` are the folders in which the program writes directly.

    A removed path is a line of a file, and stays there: what the view holds comes first. Processes share the folder.
    """

    def __init__(self, folder: str, own: tuple[str, ...]) -> None:
        self.folder = os.path.realpath(folder)
        self.files = os.path.join(self.folder, "files")
        self.log = os.path.join(self.folder, "removed.jsonl")
        self.own = tuple(os.path.realpath(root) for root in (*own, self.folder))
        self.removed: set[str] = set()
        self.log_size = 0  # bytes of the log that have been read
        self.used = False

    # Paths. A resolved path is absolute, as the program knows it, and has no symbolic links but its last part.

    def is_used(self) -> bool:
        """Returns whether anything is in the view; as long as nothing is, reading needs no look at a path."""
        self.used = self.used or exists(self.folder)
        return self.used

    def is_own(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}{os.sep}") for root in self.own)

    def logical(self, path: str) -> str:
        """Returns the program's path of a file in the view."""
        return (path[len(self.files) :] or os.sep) if self.is_in_view(path) else path

    def is_in_view(self, path: str) -> bool:
        return path == self.files or path.startswith(f"{self.files}{os.sep}")

    def absolute(self, path: str, folder: int | None = None) -> str:
        """Returns a path, relative to an open folder or to the working directory, as an absolute one."""
        if path.startswith(os.sep):
            return self.logical(path)
        base = plain.getcwd() if folder is None else path_of_descriptor(folder)
        return os.path.join(self.logical(base), path)

    def resolve(self, path: str, follow: bool = True) -> str:
        """Returns the resolved path. Files of the kernel are not looked at."""
        rest, done, links = path.split(os.sep)[::-1], "", 0
        while rest:
            name = rest.pop()
            if name == "..":
                done = done.rpartition(os.sep)[0]
            elif name not in ("", "."):
                done = f"{done}{os.sep}{name}"
                if done in UNTOUCHED:
                    return os.sep.join([done, *rest[::-1]])
                target = self.target_of(done) if follow or any(rest) else None
                if target is not None and links < MOST_LINKS:
                    links += 1
                    done = "" if target.startswith(os.sep) else done.rpartition(os.sep)[0]
                    rest += target.split(os.sep)[::-1]
        return done or os.sep

    def target_of(self, path: str) -> str | None:
        """Returns what a symbolic link holds, None for anything else."""
        place = self.place_of(path)
        status = status_of(place)
        return str(plain.readlink(place)) if status and stat.S_ISLNK(status.st_mode) else None

    def place_of(self, resolved: str) -> str:
        """Returns where the file of a resolved path is."""
        if not self.is_used() or self.is_own(resolved):
            return resolved
        inside = self.files + resolved
        return inside if exists(inside) or self.is_hidden(resolved) else resolved

    def is_hidden(self, resolved: str) -> bool:
        """Returns whether what really has a path was removed, or a folder above it."""
        self.read_log()
        while self.removed and resolved:
            if resolved in self.removed:
                return True
            resolved = resolved.rpartition(os.sep)[0]
        return False

    def is_outside(self, resolved: str) -> bool:
        return not self.is_own(resolved) and not resolved.startswith(UNTOUCHED)

    # Reading

    def reading(self, path: str, folder: int | None = None, follow: bool = True) -> str:
        """Returns the place from which a path is read."""
        if not self.is_used():
            return path
        absolute = self.absolute(path, folder)
        resolved = self.resolve(absolute, follow)
        own = self.is_own(absolute) and not self.is_in_view(path)
        if own and self.is_own(resolved) and folder is None:
            return path
        return self.place_of(resolved) if self.is_outside(resolved) else resolved

    def reading_prefix(self, path: str) -> str:
        """Returns the place of files with one name and several endings, as those of a checkpoint are."""
        if not self.is_used():
            return path
        resolved = self.resolve(self.absolute(path))
        inside, ended = self.files + resolved, f"{resolved}."
        gone = self.is_hidden(resolved) or any(each.startswith(ended) for each in self.removed)
        if not self.is_outside(resolved) or not (
            gone or names_with(f"{inside}.") or exists(inside)
        ):
            return path
        for found in names_with(ended):
            self.copy_up(found)
        return inside

    def listing(self, path: str | int) -> tuple[str, list[str]] | None:
        """Returns a folder's resolved path and what is in it if the view has changed that; None otherwise."""
        if not self.is_used():
            return None
        given = path_of_descriptor(path) if isinstance(path, int) else path
        resolved = self.resolve(self.absolute(given))
        if not self.is_outside(resolved):
            return None
        hidden, inside = self.is_hidden(resolved), names_in(self.files + resolved)
        there = None if hidden else names_in(resolved)
        kept = self.not_removed(resolved, there or ())
        if inside is None and (there is None or kept == there):
            return None
        return resolved, [*kept, *(name for name in inside or () if name not in set(kept))]

    def not_removed(self, resolved: str, names: Any) -> list[str]:
        parent = resolved.rstrip(os.sep)
        return [name for name in names if f"{parent}{os.sep}{name}" not in self.removed]

    # Writing

    def writing(
        self,
        path: str,
        folder: int | None = None,
        follow: bool = True,
        content: bool = True,
        entry: bool = False,
    ) -> str:
        """Returns the place to which a path is written, and copies there what is needed.

        What is removed or truncated is needed without its content. An `entry` is written to its folder: made, removed or
        renamed. Raises PermissionError where the program may not write.
        """
        resolved = self.resolve(self.absolute(path, folder), follow)
        if not self.is_outside(resolved) or self.is_device(resolved):
            return path if folder is None else resolved
        self.require_permission(resolved, path, entry)
        self.copy_folders(os.path.dirname(resolved))
        self.copy_up(resolved, content)
        return self.files + resolved

    def making(self, path: str, folder: int | None = None) -> str:
        """Does the same for what is made: what has this name already keeps it, whoever may write there."""
        resolved = self.resolve(self.absolute(path, folder), follow=False)
        if not self.is_outside(resolved) or not exists(self.place_of(resolved)):
            return self.writing(path, folder, follow=False, entry=True)
        self.copy_folders(os.path.dirname(resolved))
        self.copy_up(resolved)
        return self.files + resolved

    def writing_tree(self, path: str, folder: int | None = None) -> str:
        """Does the same for a folder with everything in it."""
        place = self.writing(path, folder, follow=False, entry=True)
        if self.is_in_view(place):
            self.copy_tree(self.logical(place))
        return place

    def writing_prefix(self, path: str) -> str:
        """Does the same for the files whose names begin with a prefix, and for a folder of that name."""
        place = self.writing(path, entry=True)
        if self.is_in_view(place):
            resolved = self.logical(place)
            for found in [] if self.is_hidden(resolved) else names_with(resolved):
                self.copy_tree(found)
        return place

    def remove(self, place: str) -> None:
        """Remembers that what was removed from a place in the view is not there any more."""
        resolved = self.logical(place)
        if self.is_in_view(place) and exists(resolved) and not self.is_hidden(resolved):
            with open(self.log, "ab", buffering=0) as file:
                file.write(json.dumps(resolved).encode() + b"\n")

    def require_empty(self, place: str, path: str) -> None:
        """Raises OSError for a folder in which something is, as removing it really would."""
        listed = self.listing(self.logical(place))
        if listed and listed[1]:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)

    def hide_below(self, place: str) -> None:
        """Remembers that a folder that was moved to a place has nothing of what was there before."""
        if os.path.isdir(place) and not os.path.islink(place):
            self.remove(place)

    def read_log(self) -> None:
        status = status_of(self.log)
        if status is None or status.st_size == self.log_size:
            return
        with open(self.log, "rb") as file:
            file.seek(self.log_size)
            lines = file.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        self.log_size += sum(map(len, whole))
        self.removed.update(map(json.loads, whole))

    def require_permission(self, resolved: str, path: str, entry: bool) -> None:
        """Raises PermissionError where writing to the path itself is not permitted to the program."""
        parent, place = self.place_of(os.path.dirname(resolved)), self.place_of(resolved)
        there = place if exists(place) and not entry else parent
        if exists(there) and not self.is_in_view(there) and not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def is_device(self, resolved: str) -> bool:
        status = status_of(self.place_of(resolved))
        return status is not None and stat.S_IFMT(status.st_mode) not in KEPT

    # Copies

    def copy_folders(self, resolved: str) -> None:
        """Makes a folder in the view, and those above it, as far as they are folders of the program's."""
        os.makedirs(self.files, exist_ok=True)
        for above in reversed([resolved, *parents(resolved)]):
            if self.place_of(above) == above and os.path.isdir(above):
                self.copy_up(above)

    def copy_up(self, resolved: str, content: bool = True) -> None:
        """Copies a file, a link, or a folder without what is in it, unless the view has it or has removed it."""
        status, inside = status_of(resolved), self.files + resolved
        if status is None or self.place_of(resolved) != resolved:
            return
        if stat.S_ISLNK(status.st_mode):
            plain.symlink(plain.readlink(resolved), inside)
        elif stat.S_ISDIR(status.st_mode):
            os.makedirs(inside, exist_ok=True)
            copy_status(resolved, inside)
        elif stat.S_ISREG(status.st_mode):
            copy_file(resolved, inside, content)

    def copy_tree(self, resolved: str) -> None:
        self.copy_up(resolved)
        inside = self.files + resolved
        if not os.path.isdir(inside) or os.path.islink(inside) or self.is_hidden(resolved):
            return
        for name in self.not_removed(resolved, names_in(resolved) or ()):
            self.copy_tree(os.path.join(resolved, name))


def parents(path: str) -> Iterator[str]:
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def copy_file(source: str, target: str, content: bool) -> None:
    """Copies a file, with its permissions, at once: another process may be reading it."""
    unfinished = f"{target}.{os.getpid()}.copying"
    shutil.copyfile(source if content else os.devnull, unfinished)
    copy_status(source, unfinished)
    plain.replace(unfinished, target)


def copy_status(source: str, target: str) -> None:
    """Copies permissions and times; what is in the view can be written by its owner."""
    shutil.copystat(source, target)
    mode = plain.stat(target).st_mode
    needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | stat.S_IWUSR
    plain.chmod(target, stat.S_IMODE(mode) | needed)


def status_of(path: str) -> os.stat_result | None:
    try:
        status: os.stat_result = plain.lstat(path)
        return status
    except (OSError, ValueError):
        return None


def exists(path: str) -> bool:
    """Returns whether there is a file, or a link to nothing."""
    return status_of(path) is not None


def names_in(folder: str) -> list[str] | None:
    """Returns what is in a folder, None if it is none."""
    try:
        return list(plain.listdir(folder))
    except OSError:
        return None


def names_with(prefix: str) -> list[str]:
    """Returns the paths that begin with a prefix, in the folder of that prefix."""
    folder, name = os.path.split(prefix)
    names = names_in(folder) or ()
    return [os.path.join(folder, each) for each in names if each.startswith(name)]


def path_of_descriptor(descriptor: int) -> str:
    """Returns the path of an open file or folder; raises OSError where the system does not tell."""
    if sys.platform != "darwin":
        return str(plain.readlink(f"/proc/self/fd/{descriptor}"))
    import fcntl

    found = fcntl.fcntl(descriptor, F_GETPATH, bytes(LONGEST_PATH))
    return os.fsdecode(found.rstrip(b"\0"))
