"""Restricts what other people's code can reach: no network but loopback, and no files to write but its own.

An isolated fork server enters a network namespace before it imports anything, and every process that is forked from it is in
that namespace too. Where the system does not permit that, an audit hook refuses the sockets of the process's own Python.
"""

import os
import socket
import sys
from typing import Any

from ..base.errors import UserError
from ..observer import landlock

NAMESPACE = "a network with nothing in it but loopback"
REFUSED = "Python's sockets barred; programs that it starts are not"
READ_ONLY = "read only, but for a folder of its own"
WRITABLE = "not protected: this system has no Landlock"
OUTSIDE = [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]  # for documents only
LOCAL = ("localhost", "127.0.0.1", "::1", "", None)


def begin() -> str:
    """Called before any of the code: refuses the network, and returns how it is kept from it."""
    if network() != NAMESPACE:
        sys.addaudithook(refuse_outside)
    return network()


def forbid_writing(own: str) -> str:
    """Lets this process and what it starts write in its own folder only; returns how files are protected from it.

    It cannot read the memory of other processes of this user either, but what /proc says of them. Called before anything
    starts a thread that runs such code.
    """
    os.environ["HOME"] = own
    folders = [own, os.environ.get("TMPDIR", own)]
    return READ_ONLY if landlock.restrict(folders) else WRITABLE


def network() -> str:
    """Tries how this process is kept from the network; connecting a datagram socket sends nothing."""
    try:
        return "not at all" if any(has_route(*each) for each in OUTSIDE) else NAMESPACE
    except UserError:
        return REFUSED


def has_route(family: int, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect((address, 9))
            return True
    except OSError:
        return False


def refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, which Python cannot remove again; raises UserError for any host but this one."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    if host not in LOCAL:
        raise UserError(f"There is no network while an exercise is graded; it asked for {host!r}.")
