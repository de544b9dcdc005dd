"""Takes a fork server off the network, and ends what its children leave behind."""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from ..base import namespaces

PR_SET_CHILD_SUBREAPER = 36  # of prctl(2)
SIOCSIFFLAGS, IFF_UP_AND_RUNNING = 0x8914, 0x41  # of netdevice(7)
KILLING = 5  # seconds to kill what starts more processes


def isolate() -> None:
    """Leaves the network if the system permits it, and becomes the parent of whatever its children leave behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if is_permitted(leave_network):
        leave_network()


def is_permitted(step: Callable[[], object]) -> bool:
    """Tries a step in a child: one that fails half-way would leave this process without loopback."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            step()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def leave_network() -> None:
    """Enters a new network namespace in which there is only loopback."""
    namespaces.unshare_as_user(namespaces.NEW_NETWORK)
    with socket.socket() as any_socket:
        request = struct.pack("16sh22x", b"lo", IFF_UP_AND_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def kill_children(but: set[int]) -> None:
    """Kills all children but some. What they leave behind becomes a child in turn, and is killed too."""
    deadline = time.monotonic() + KILLING
    while (pids := children() - but) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def children() -> set[int]:
    """Returns this process's children, by the fourth field of proc(5)'s stat; the second, a name, may hold anything."""
    pids = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                pids.add(int(stat.parent.name))
    return pids
