"""What a participant's code is run in: no network but loopback, and nothing that outlives its run.

The warm process of a grading enters a network namespace of its own before it imports anything, so every kernel that is
forked from it is in there as well. Where the system does not permit that, a notebook bars the sockets of its own Python.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from .refusals import Refused

VARIABLE = "CLINIC_GUARDED"
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER and CLONE_NEWNET of unshare(2)
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
SET_FLAGS, UP = 0x8914, 0x41  # SIOCSIFFLAGS of netdevice(7); IFF_UP and IFF_RUNNING
PATIENCE = 5  # seconds to end what keeps starting anew
APART = "a network with nothing in it but loopback"
BARRED = "Python's sockets barred; programs that it starts are not"
OUTSIDE = [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]  # for documents only
LOCAL = ("localhost", "127.0.0.1", "::1", "", None)


# The warm process


def enter():
    """Leaves the network if the system permits it, and adopts whatever its children leave behind."""
    ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    if permitted(leave_network):
        leave_network()


def permitted(step) -> bool:
    """Tried in a child first: a step that fails half-way would leave this process without loopback as well."""
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
    deadline = time.monotonic() + PATIENCE
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


# The notebook that is graded


def begin():
    """Before any of a participant's code: nothing that it prints is heard, and nothing is reached but loopback."""
    from .modes import show

    if network() != APART:
        sys.addaudithook(bar)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as this process lives
    show("guarded", network=network())


def network() -> str:
    """How this process is kept from the network, found by trying; to connect a datagram socket sends nothing."""
    try:
        return "not at all" if any(has_route(*each) for each in OUTSIDE) else APART
    except Refused:
        return BARRED


def has_route(family: int, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.connect((address, 9))
            return True
    except OSError:
        return False


def bar(event: str, given: tuple):
    """An audit hook: there is no way to take one off again."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"):
        address = given[0] if event == "socket.getaddrinfo" else given[1]
        host = address[0] if isinstance(address, tuple) else address
        if isinstance(address, tuple) or event == "socket.getaddrinfo":
            require_local(host)


def require_local(host):
    if host not in LOCAL:
        raise Refused(f"There is no network while an exercise is graded; it asked for {host!r}.")
