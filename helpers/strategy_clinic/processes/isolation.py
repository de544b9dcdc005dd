"""A network namespace of its own, and nothing left behind."""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import time
from pathlib import Path

GUARDED = "CLINIC_GUARDED"
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER and CLONE_NEWNET of unshare(2)
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
SET_FLAGS, UP = 0x8914, 0x41  # SIOCSIFFLAGS of netdevice(7); IFF_UP and IFF_RUNNING
STUBBORN = 5  # seconds to end what keeps starting anew


def isolate():
    """Leaves the network if the system permits it, and adopts whatever its children leave behind."""
    ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    if permitted(leave_network):
        leave_network()


def permitted(step) -> bool:
    """Whether a step succeeds, tried in a child: one that fails half-way would leave this process without loopback."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            step()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def leave_network():
    """A new namespace; who is not root makes itself one of users first, in which it keeps its own number."""
    user, group = os.getuid(), os.getgid()
    try:
        unshare(NEW_NETWORK)
    except PermissionError:
        unshare(NEW_USER | NEW_NETWORK)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", UP))


def unshare(flags: int):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def sweep(known: set[int]):
    """Ends all children except the known ones; what they leave behind becomes a child in its turn."""
    deadline = time.monotonic() + STUBBORN
    while (left := children() - known) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def children() -> set[int]:
    """This process's children, by the fourth field of proc(5)'s stat; the second, a name, may hold anything."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found
