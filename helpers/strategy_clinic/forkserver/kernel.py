"""`python -m strategy_clinic.forkserver.kernel -f FILE`: a kernel for Jupyter, forked from the fork server if one is running.

Where none is running, this process becomes an ordinary kernel at once, and a fork server starts beside it for the kernels
that follow. A Jupyter server drops what it is asked to run while a kernel's launch waits, so nothing is waited for here.
"""

import os
import select
import signal
import sys
from typing import Any

from . import client


def main() -> None:
    module = sys.orig_argv.index("-m") + 1
    command = [
        sys.executable,
        *sys.orig_argv[1:module],
        client.KERNEL,
        *sys.orig_argv[module + 1 :],
    ]
    try:
        kernel = forked(command)
    except client.NoForkServer:
        os.execv(sys.executable, command)
    # The client waits for this end, which the tidying of an interpreter would delay.
    os._exit(represent(kernel))


def forked(command: list[str]) -> client.ForkedProcess:
    """Forks a kernel. Raises NoForkServer if no fork server is ready, and has one started where there can be one."""
    path = client.socket_path(os.environ)
    if client.is_ready(path):
        return client.fork(str(path), command, os.environ, os.getcwd(), (0, 1, 2))
    client.start_for_this_process()
    raise client.NoForkServer("it is starting")


def represent(kernel: client.ForkedProcess) -> int:
    """Passes signals on to a kernel and returns its exit status; ends before it if whoever started this process has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: kernel.send_signal(number))
    ends: list[Any] = [kernel.connection]
    if os.environ.get("JPY_PARENT_PID"):  # a kernel without it outlives its client
        ends.append(os.pidfd_open(os.getppid()))
    while kernel.connection in select.select(ends, [], [])[0]:
        if (status := kernel.poll()) is not None:
            return status if status >= 0 else 128 - status
    return 1


if __name__ == "__main__":
    main()
