"""Ends the process before it changes something outside of its folder that is in no view.

What Python does itself is seen by an audit hook. Compiled code and child programs are refused by Landlock, or not started
where the kernel has none.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from .context import Context, kill_process
from .events import HeldChildFailed, WriteRefused
from .landlock import restrict
from .observer import location_of
from .patching import Call
from .provenance import HERE, outer_frame
from .python_paths import DATABASE, WRITING
from .redirection import Redirection
from .view import KEPT, UNTOUCHED, path_of_descriptor, status_of
from .view import plain as system


class Changed(NamedTuple):
    """A path that an audit event names, and whether its folder is changed, or else what is there."""

    position: int
    entry: bool
    folder: int = 0  # the position of the open folder to which the path is relative; 0 for none


# Audit events of Python, by the paths that they change.
EVENTS = {
    "os.mkdir": (Changed(0, True, 2),),
    "os.remove": (Changed(0, True, 1),),
    "os.rmdir": (Changed(0, True, 1),),
    "os.rename": (Changed(0, True, 2), Changed(1, True, 3)),
    "os.link": (Changed(0, False, 2), Changed(1, True, 3)),
    "os.symlink": (Changed(1, True, 2),),
    "os.truncate": (Changed(0, False),),
    "os.chmod": (Changed(0, False, 2),),
    "os.chown": (Changed(0, False, 3),),
    "os.utime": (Changed(0, False, 3),),
    "os.setxattr": (Changed(0, False),),
    "os.removexattr": (Changed(0, False),),
    "os.chflags": (Changed(0, False),),
}
# Audit events of child programs, by the position of the command.
CHILDREN = {
    "subprocess.Popen": 1,
    "os.system": 0,
    "os.posix_spawn": 1,
    "os.spawn": 2,
    "os.exec": 1,
}
STARTING = "subprocess", "os", "asyncio"  # modules that start a child program for their caller
COMPILED = f"{os.sep}__pycache__{os.sep}"  # of modules: nothing depends on them
LONGEST_COMMAND = 120
DENIED = re.compile(r"permission denied|errno = 13", re.IGNORECASE)
IN_QUOTES, WITHOUT = re.compile(r"['\"](/[^'\"]+)['\"]"), re.compile(r"(/[^\s'\";:,]+)")


class Refusals:
    def __init__(self, context: Context, redirection: Redirection) -> None:
        self.context, self.redirection, self.view = context, redirection, redirection.view
        self.process, self.has_landlock = os.getpid(), False

    def start(self) -> None:
        self.has_landlock = restrict(self.view.own)
        sys.addaudithook(self.audit)
        if self.has_landlock:
            self.context.patches.wrap(
                subprocess.Popen, "_handle_exitstatus", after=self.popen_ended
            )
            self.context.patches.wrap(os, "system", after=self.system_ended)

    # What Python does itself

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Is called for each audit event of Python; most of them are of no interest."""
        if event == "open":
            self.check(event, self.opens, args)
        elif event in EVENTS:
            self.check(event, self.changes, args)
        elif event == "sqlite3.connect":
            self.check(event, self.connects, args)
        elif event in CHILDREN and not self.has_landlock:
            self.check(event, self.starts, args)

    def check(self, event: str, handler: Callable[..., None], args: tuple[Any, ...]) -> None:
        thread = self.redirection.thread
        if thread.busy or thread.opening:
            return
        with self.redirection.looking():
            handler(event, args)

    def opens(self, event: str, args: tuple[Any, ...]) -> None:
        path, _, flags = args
        if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
            self.require_own(os.fsdecode(path), False)

    def changes(self, event: str, args: tuple[Any, ...]) -> None:
        for position, entry, folder in EVENTS[event]:
            path = args[position]
            if isinstance(path, int):
                self.require_own(path_of_descriptor(path), entry)
            else:
                is_open = folder and args[folder] >= 0
                base = path_of_descriptor(args[folder]) if is_open else system.getcwd()
                self.require_own(os.path.join(base, os.fsdecode(path)), entry)

    def connects(self, event: str, args: tuple[Any, ...]) -> None:
        path = os.fsdecode(args[0]).partition("?")[0]
        path = path[len("file:") :] if path.startswith("file:") else path
        if path and not path.startswith(":memory:"):
            for ending in DATABASE:
                self.require_own(path + ending, False)

    def require_own(self, path: str, entry: bool) -> None:
        """Ends the process for a path that is outside, and that it could change."""
        parent, name = os.path.split(os.path.abspath(path))
        real = os.path.join(os.path.realpath(parent), name) if entry else os.path.realpath(path)
        if self.is_harmless(real, entry):
            return
        if COMPILED in real:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        self.refuse(path)

    def is_harmless(self, real: str, entry: bool = False) -> bool:
        """Returns whether writing to a path changes nothing outside: it is the program's, a device, or not permitted."""
        if self.view.is_own(real) or real.startswith(UNTOUCHED):
            return True
        status = status_of(real)
        if status is not None and stat.S_IFMT(status.st_mode) not in KEPT:
            return True
        changed = os.path.dirname(real) if entry or status is None else real
        return not os.access(changed, os.W_OK)

    # Child programs

    def starts(self, event: str, args: tuple[Any, ...]) -> None:
        """Refuses a child program that nothing holds, unless it is a Python that is observed as this one is.

        A library does without a program that cannot be started. What the standard library starts itself only asks the
        system about itself.
        """
        command = args[CHILDREN[event]]
        frame = caller()
        if frame is None or is_observed(command):
            return
        file, provenance = frame.f_code.co_filename, self.context.provenance
        if provenance.is_own(file):
            self.refuse(in_words(command))
        if not file.startswith(provenance.standard_library) or file.startswith(provenance.sites):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), in_words(command))

    def popen_ended(self, _: Any, call: Call) -> None:
        if call.owner.returncode:
            self.child_failed(call.owner.returncode, call.owner.args)

    def system_ended(self, status: int, call: Call) -> None:
        if status:
            self.child_failed(os.waitstatus_to_exitcode(status), call["command"])

    def child_failed(self, status: int, command: Any) -> None:
        words = in_words(command)
        if status > 0 and self.context.is_first("child failed", words):
            location = self.context.provenance.plain_stack()
            self.context.emit(HeldChildFailed(location, status, words))

    # The end

    def refuse(self, path: str) -> None:
        """Reports what was to be changed, and ends the program before it is."""
        self.context.emit(WriteRefused(self.context.provenance.plain_stack(), path))
        kill_process(self.context.first_process)

    def exception_raised(self, error: BaseException) -> None:
        """Reports a path that Landlock has refused, if that is why the program has ended."""
        with self.redirection.looking():
            path = self.refused_path(error) if self.has_landlock else None
        if path is not None:
            location = location_of(error, self.context.provenance)
            self.context.emit(WriteRefused(location, path))

    def refused_path(self, error: BaseException | None) -> str | None:
        """Returns a path that permissions would allow to be written: Landlock has refused it."""
        seen: list[BaseException] = []
        while error is not None and error not in seen:
            seen.append(error)
            for path in denied_paths(error):
                if not self.is_harmless(os.path.realpath(path)):
                    return path
            error = error.__cause__ or error.__context__
        return None


def denied_paths(error: BaseException) -> Iterator[str]:
    """Yields the paths that an error names which says that a permission is missing."""
    text = str(error)
    if isinstance(error, OSError):
        yield from (os.fsdecode(each) for each in (error.filename, error.filename2) if each)
    if DENIED.search(text):
        yield from IN_QUOTES.findall(text) or WITHOUT.findall(text)


def caller() -> FrameType | None:
    """Returns the frame that has a child program started."""
    frame = outer_frame()
    while frame is not None and (module_of(frame) in STARTING or is_ours(frame)):
        frame = frame.f_back
    return frame


def is_ours(frame: FrameType) -> bool:
    """Tells whether this is a function that the observer has put in place of another."""
    return frame.f_code.co_filename.startswith(HERE)


def module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_observed(command: Any) -> bool:
    """Tells whether a command starts this package, which observes what it runs."""
    words = [] if isinstance(command, (str, bytes)) else [os.fsdecode(each) for each in command]
    return any(word.startswith(HERE) or word == "strategy_clinic.observer" for word in words)


def in_words(command: Any) -> str:
    if isinstance(command, (str, bytes, os.PathLike)):
        return os.fsdecode(command)[:LONGEST_COMMAND]
    return " ".join(shlex.quote(os.fsdecode(each)) for each in command)[:LONGEST_COMMAND]
