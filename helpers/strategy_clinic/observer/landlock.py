"""Lets this process, and all that it starts, write only in some folders: Landlock, of Linux 5.19 and later.

It needs no privilege, and cannot be undone. Permissions, times and owners of files are not its subject.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, on all processors
VERSION, PATH_BENEATH, NO_NEW_PRIVILEGES = 1, 1, 38
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
# Removing and making files of all kinds, and moving them to another folder.
ENTRIES = sum(1 << number for number in range(4, 14))
RIGHTS = {
    2: WRITE_FILE | ENTRIES,
    3: WRITE_FILE | ENTRIES | TRUNCATE,
}  # by the version that has them
# Version 1 lets no file be moved to another folder, which TensorFlow does with each checkpoint.
OLDEST = min(RIGHTS)
DEVICES = "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"
MEMORY = "/dev/shm"


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Returns the version of Landlock that the kernel has, 0 for none that is of use."""
    if not sys.platform.startswith("linux"):
        return 0
    found = system_call(CREATE_RULESET, None, 0, VERSION)
    return found if found >= OLDEST else 0


def restrict(folders: Iterable[str]) -> bool:
    """Refuses this thread, and what it starts, to write elsewhere. Returns False where that is not possible."""
    known = version()
    if not known:
        return False
    rights = RIGHTS[max(each for each in RIGHTS if each <= known)]
    handled = ctypes.c_uint64(rights)
    rules = system_call(CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    if rules < 0:
        return False
    try:
        for folder in (*folders, MEMORY):
            allow(rules, folder, rights)
        for device in DEVICES:
            allow(rules, f"/dev/{device}", rights & (WRITE_FILE | TRUNCATE))
        return not libc().prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) and not system_call(
            RESTRICT_SELF, rules, 0
        )
    finally:
        os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = PathBeneath(rights, folder)
        if system_call(ADD_RULE, rules, PATH_BENEATH, ctypes.byref(rule), 0) < 0:
            raise OSError(ctypes.get_errno() or errno.EINVAL, "Landlock takes no rule", path)
    finally:
        os.close(folder)


def system_call(*arguments: object) -> int:
    """Returns the result; numbers are passed as wide as the kernel reads them."""
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(libc().syscall(*wide))


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
