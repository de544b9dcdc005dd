"""A view of the file system of its own: programs in it read and write everything, and nothing is changed outside of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from ..base import files

CODE = (
    "import sys; sys.path.insert(0, {!r});"
    " from strategy_clinic.processes.view_holder import main; main()"
)


class NoView(Exception):
    """This system permits no view; the message says why."""


class View:
    """What is written in the view is in the folder `state`, and can be the beginning of another view.

    A process enters it by `namespaces.enter_mounts_of`, with the arguments in `entrance`.
    """

    def __init__(self, place: Path, hidden: Path, shared: Path, begin: Path | None = None):
        """Makes a view in an empty place. In it, the folder `hidden` is empty but for `shared`. Raises NoView."""
        self.state = place / "state"
        if begin:
            copy_state(begin, self.state)
        else:
            self.state.mkdir()
        (work := place / "work").mkdir()
        arguments = map(str, (self.state, work, hidden, shared))
        code = CODE.format(str(files.PACKAGE.parent))
        self.holder = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the program in the view
        )
        assert self.holder.stdout
        try:
            reply = json.loads(self.holder.stdout.readline() or '{"error": "it cannot be started"}')
        except BaseException:
            self.end()
            raise
        if "error" in reply:
            self.end()
            raise NoView(reply["error"])
        self.read_only: list[str] = reply["read_only"]  # what can only be read in it

    @property
    def entrance(self) -> str:
        return f"{self.holder.pid}:{self.state}"

    def end(self) -> None:
        """Lets go of the view. It goes on as long as a process is in it; its state stays."""
        with contextlib.suppress(OSError):
            self.holder.communicate()


def copy_state(state: Path, target: Path) -> None:
    shutil.copytree(state, target, symlinks=True, copy_function=copy_entry)


def copy_entry(source: str, target: str) -> None:
    """Copies a file, or the mark of an overlay that one was removed, which is a device without a number."""
    status = os.lstat(source)
    if stat.S_ISCHR(status.st_mode) and not status.st_rdev:
        os.mknod(target, status.st_mode)
    elif stat.S_ISFIFO(status.st_mode):
        os.mkfifo(target)
    elif stat.S_ISREG(status.st_mode):
        # Without the mark of the file that it was, which two links have in common and an overlay takes for one file.
        shutil.copyfile(source, target)
        os.chmod(target, stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
