"""Starts the fork server, and forks processes from it; its socket lies in a folder that only its user can enter.

A warm kernel's start waits for the imports of this module; what only some of its functions need is imported there.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ..setups.start_variables import TENSORFLOW_START, is_read_at_import

IDLE = 300.0  # seconds without a process after which the fork server ends
SERVER = "strategy_clinic.forkserver.server"
PACKAGES = Path(__file__).parents[2]  # where this package is found
KERNEL = "ipykernel_launcher"  # the module of an ordinary kernel
COLD = "CLINIC_COLD"  # the environment variable that turns the fork server off
ISOLATED = "CLINIC_ISOLATED"  # the one that asks for a fork server without a network
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
PLAIN = "CLINIC_PLAIN"  # the one that asks for a fork server that has TensorFlow imported and has set nothing
# What a kernel sets before it imports these libraries.
KERNEL_ENVIRONMENT = TENSORFLOW_START | {
    "KERAS_BACKEND": "tensorflow",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


class NoForkServer(Exception):
    """There is no fork server; the message says why."""


# The server


def running(environment: Mapping[str, str]) -> str | None:
    """Returns the socket of the fork server for this environment, or None where none is ready."""
    with contextlib.suppress(NoForkServer):
        path = socket_path(environment)
        return str(path) if is_ready(path) else None
    return None


def ensure(environment: Mapping[str, str], idle: float = IDLE, beside: int = 0) -> str:
    """Returns the socket of the fork server for this environment, which is started if need be, when it is ready."""
    path = socket_path(environment)
    if not is_ready(path):
        start(environment, idle, beside)
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the server's until it is ready
        if not is_ready(path):
            raise NoForkServer(f"the fork server did not start, see {path.with_suffix('.log')}")
    return str(path)


def start(environment: Mapping[str, str], idle: float = IDLE, beside: int = 0) -> None:
    """Starts the fork server unless it runs or is just starting, and does not wait for it.

    Args:
        beside: A process. The server is not idle while that process runs.
    """
    import logging
    import subprocess

    path = socket_path(environment)
    with open(path.with_suffix(".lock"), "w") as lock, open(os.devnull) as nothing:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if is_ready(path):
            return
        logger = logging.getLogger(__name__)
        logger.info("starting a fork server, which logs to %s", path.with_suffix(".log"))
        with open(path.with_suffix(".log"), "w") as log:
            subprocess.Popen(
                [sys.executable, "-m", SERVER, path, str(idle), str(lock.fileno()), str(beside)],
                env=dict(environment),
                cwd=PACKAGES,
                pass_fds=[lock.fileno()],
                stdin=nothing,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal does not reach it
            )


def start_for_this_process() -> None:
    """Has a fork server started that is not idle while this process runs, and does not wait for it.

    A process that ends at once starts it, so that it is no child of what this process becomes.
    """
    with contextlib.suppress(NoForkServer):
        if is_ready(socket_path(os.environ)):
            return
        if os.fork() == 0:
            try:
                start(os.environ, beside=os.getppid())
            finally:
                os._exit(0)
        os.wait()


def socket_path(environment: Mapping[str, str]) -> Path:
    """Returns where the fork server for this environment listens. Raises NoForkServer where there can be none."""
    if sys.platform != "linux":
        raise NoForkServer(
            f"a process that holds TensorFlow is forked on Linux only, and this is {sys.platform}"
        )
    if environment.get(COLD):
        raise NoForkServer(f"{COLD} is set")
    try:
        return private_folder(environment) / f"{key(environment)}.sock"
    except OSError as error:
        raise NoForkServer(str(error)) from None


def private_folder(environment: Mapping[str, str]) -> Path:
    """Returns a folder that only this user can enter; raises PermissionError if others can. TMPDIR is each process's own."""
    parent = environment.get("XDG_RUNTIME_DIR", "")
    folder = Path(parent if os.path.isdir(parent) else "/tmp") / f"strategy-clinic-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()  # of a link itself, which leads to a folder of somebody's choice
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


def key(environment: Mapping[str, str]) -> str:
    """Returns a word that changes with what a fork server reads at its start. It is short, as is a socket's path."""
    is_plain = PLAIN in environment
    set_later = () if is_plain else (LEGACY_KERAS,)
    read = {
        name: value
        for name, value in (({} if is_plain else KERNEL_ENVIRONMENT) | dict(environment)).items()
        # Each of their values needs a fork server.
        if name in (ISOLATED, PLAIN) or (is_read_at_import(name) and name not in set_later)
    }
    # An environment may be reached through links.
    python = [os.path.realpath(path) for path in (sys.executable, os.path.dirname(sys.executable))]
    paths = [Path(sysconfig.get_path("purelib")), *Path(__file__).parent.glob("*.py")]
    facts = [python, read, sorted(path.stat().st_mtime_ns for path in paths)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def is_ready(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


# Processes forked from it


class ForkedProcess:
    """What subprocess.Popen is for a child process, for a child of the fork server. It leads a process group."""

    def __init__(self, connection: socket.socket, command: Sequence[str]):
        self.connection, self.args = connection, command
        self.stdin: IO[str] | None = None
        self.returncode: int | None = None
        self.replies = connection.makefile("rb")
        self.pid: int = self.reply()["pid"]

    def reply(self) -> dict[str, Any]:
        line = self.replies.readline()
        # Without a line the fork server has died, and its children with it.
        return dict(json.loads(line)) if line else {"returncode": -signal.SIGKILL}

    def poll(self, seconds: float | None = 0) -> int | None:
        if self.returncode is None and select.select([self.connection], [], [], seconds)[0]:
            self.returncode = self.reply()["returncode"]
            self.replies.close()
            self.connection.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        status = self.poll(timeout)
        if status is None:
            import subprocess

            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Sends a signal to the process and all that it has started."""
        if self.poll() is None:
            signal_group(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def signal_group(pid: int, number: int) -> None:
    """Sends a signal to a forked process and its group, which a process makes a moment after its start."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            return send(pid, number)


def fork(
    server: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    streams: Sequence[int],
) -> ForkedProcess:
    """Runs a command, `python -m module` with arguments, in a fork. Raises NoForkServer if the server does not answer.

    Args:
        server: The server's socket.
        streams: The descriptors of its standard input, output and error.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(server)
        request = {"argv": list(command), "env": dict(environment), "cwd": folder}
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [text], list(streams))
        connection.sendall(text[sent:])
        return ForkedProcess(connection, command)
    except (OSError, KeyError) as error:
        connection.close()
        raise NoForkServer(f"the fork server did not answer ({error})") from None
