"""Calls of Linux that make and enter namespaces and mount file systems. Each raises OSError where the system refuses it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEW_MOUNTS, NEW_USER, NEW_NETWORK = 0x20000, 0x10000000, 0x40000000  # of unshare(2)
READ_ONLY, REMOUNT, BIND, RECURSIVE = 1, 32, 4096, 16384  # of mount(2)
PRIVATE, RELATIME = 1 << 18, 1 << 21
PR_SET_DUMPABLE = 4  # of prctl(2)
CAPABILITIES_VERSION = 0x20080522  # of capset(2)


def call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    call("unshare", flags)


def unshare_as_user(flags: int) -> bool:
    """Enters new namespaces. A user who is not root enters a new user namespace first, with the same number there.

    Returns whether that was needed.
    """
    user, group = os.getuid(), os.getgid()
    try:
        unshare(flags)
    except PermissionError:
        unshare(NEW_USER | flags)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        return True
    return False


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    call("mount", *map(os.fsencode, (source, target, kind)), flags, os.fsencode(options))


def enter_mounts_of(process: int, root: str) -> bool:
    """Enters the mount namespace of another process, with a folder of it as the root, and stays in the same folder.

    Returns whether a user namespace came with it. Its privileges are given up again: what this user may not do elsewhere
    is refused here, too. This process must have one thread.
    """
    here, as_user = os.getcwd(), enter("user", NEW_USER, process)
    if not enter("mnt", NEW_MOUNTS, process):
        return as_user  # a child of one that has entered
    os.chroot(root)
    os.chdir(here)
    if as_user:
        give_up_privileges()
    return as_user


def enter(name: str, flag: int, process: int) -> bool:
    """Enters a namespace of another process; returns False if this process is in it already."""
    place = f"/proc/{process}/ns/{name}"
    if os.stat(place).st_ino == os.stat(f"/proc/self/ns/{name}").st_ino:
        return False
    with open(place) as namespace:
        call("setns", namespace.fileno(), flag)
    return True


def give_up_privileges() -> None:
    version, nothing = ctypes.c_uint32 * 2, ctypes.c_uint32 * 6
    call("capset", version(CAPABILITIES_VERSION, 0), nothing())
    # A process whose privileges have changed is hidden from its own user otherwise, as /proc/self/fd is.
    call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
