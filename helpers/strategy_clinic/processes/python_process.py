"""Starts Python processes: forked from the fork server where there is one, otherwise spawned."""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn, Protocol

from ..base import files

try:
    from ..forkserver import beside, client, kernelspec
except ImportError:  # installed without it, or on a system that cannot fork
    beside = client = kernelspec = None  # type: ignore[assignment]  # all are None where one is

# Seconds without a process after which a plain fork server ends, if whoever began it has ended, too: the next examination
# may use it.
UNUSED = 20.0

# Of the environment, what other people's code may read: it may hold keys and passwords.
KEPT = (
    "CLINIC_COLD",
    "CUDA_VISIBLE_DEVICES",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "TZ",
    "XDG_RUNTIME_DIR",
)


class Process(Protocol):
    """What a forked process and subprocess.Popen have in common."""

    pid: int
    stdin: IO[str] | None
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


def fork_server(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns the fork server for this environment, started if need be, when it is ready; None where there can be none."""
    if client is None:
        return None
    try:
        return client.ensure(environment)
    except client.NoForkServer as reason:
        return say_once(f"processes start cold here: {reason}")


def running_fork_server(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns the fork server for this environment if one is ready."""
    return client.running(environment) if client else None


def begin_plain_fork_server(environment: Mapping[str, str]) -> None:
    """Has a fork server started for `plain_fork_server`, where there can be one, and does not wait for it."""
    if client:
        with contextlib.suppress(client.NoForkServer):
            client.start({**environment, client.PLAIN: "1"}, UNUSED, os.getpid())


def plain_fork_server(environment: Mapping[str, str]) -> str | None:
    """Returns a fork server that has TensorFlow imported in this environment and has set nothing, when it is ready.

    It ends some seconds after this process. Returns None where there can be none.
    """
    if client:
        with contextlib.suppress(client.NoForkServer):
            return client.ensure({**environment, client.PLAIN: "1"}, UNUSED, os.getpid())
    return None


@functools.cache
def say_once(line: str) -> None:
    print(f"clinic: {line}", file=sys.stderr)


def isolated(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the few variables that Python needs, and the one whose fork server has no network but loopback."""
    kept = {name: environment[name] for name in KEPT if name in environment}
    return kept | ({client.ISOLATED: "1"} if client else {})


def warm_kernels() -> dict[str, str]:
    """Returns the variables with which Jupyter starts the kernel `python3` warm, whatever is installed as that."""
    paths = [str(kernelspec.WARM)] if kernelspec else []
    return {"JUPYTER_PATH": os.pathsep.join(filter(None, [*paths, os.environ.get("JUPYTER_PATH")]))}


def open_lab(page: Path) -> NoReturn:
    """Becomes JupyterLab with this page, on loopback and with a token, beside a fork server where there can be one."""
    # Root, as in a container, has to be allowed by name.
    root = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    command = [sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", *root, str(page)]
    become = beside.become if beside else functools.partial(os.execv, sys.executable)
    become(command)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    streams: tuple[int, int, int],
    server: str | None,
) -> Process:
    """Runs `python -m module`, with these standard streams, in a process that leads a group."""
    if server:
        with contextlib.suppress(client.NoForkServer):  # it may have ended just now
            return client.fork(server, command, environment, folder, streams)
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        command,
        env=dict(environment),
        cwd=folder,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        text=True,
    )


def start_module(
    module: str, environment: Mapping[str, str], log: IO[str], server: str | None, *arguments: str
) -> Process:
    """Runs `python -m module`, which finds this package, with a pipe as its standard input.

    The folder in which it starts is not searched for modules: what lies there may have the name of one of ours.
    """
    package = str(files.PACKAGE.parent)
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    paths = [package, *(path for path in paths if path not in ("", package))]
    command = [sys.executable, "-P", "-m", module, *arguments]
    reading, writing = os.pipe()
    try:
        environment = dict(environment) | {"PYTHONPATH": os.pathsep.join(paths)}
        streams = (reading, log.fileno(), log.fileno())
        process = start(command, environment, os.getcwd(), streams, server)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    process.stdin = os.fdopen(writing, "w")
    return process
