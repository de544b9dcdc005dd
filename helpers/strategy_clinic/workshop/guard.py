"""What a participant's code is run in: no network but loopback, and nothing that outlives its run.

The fork server of a grading enters a new network namespace before it imports anything, so every kernel that is
forked from it is in there as well. Where the system does not permit that, a notebook bars the sockets of its own Python.
"""

import os
import socket
import sys

from ..base.display import report
from ..base.errors import UserError

APART = "a network with nothing in it but loopback"
BARRED = "Python's sockets barred; programs that it starts are not"
OUTSIDE = [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]  # for documents only
LOCAL = ("localhost", "127.0.0.1", "::1", "", None)


def begin():
    """Before any of a participant's code: nothing that it prints is heard, and nothing is reached but loopback."""
    if network() != APART:
        sys.addaudithook(bar)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as this process lives
    report("guarded", network=network())


def network() -> str:
    """How this process is kept from the network, found by trying; to connect a datagram socket sends nothing."""
    try:
        return "not at all" if any(has_route(*each) for each in OUTSIDE) else APART
    except UserError:
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
        raise UserError(f"There is no network while an exercise is graded; it asked for {host!r}.")
