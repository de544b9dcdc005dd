"""Kernels as their users see them: started, asked, and gone."""

import contextlib
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from jupyter_client.manager import start_new_kernel
from strategy_clinic.forkserver.client import SERVER
from strategy_clinic.processes import python_process


@contextlib.contextmanager
def kernel(**options):
    """A kernel, which is warm where it can be: the first one does not wait for the fork server."""
    python_process.fork_server(options.get("env") or python_process.os.environ)
    with first_kernel(**options) as started:
        yield started


@contextlib.contextmanager
def first_kernel(**options):
    manager, client = start_new_kernel(kernel_name="python3", **options)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client, code: str) -> str:
    """What a cell prints; a cell that raises fails the test."""
    lines = []

    def listen(message):
        if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            lines.append(message["content"]["text"])

    reply = client.execute_interactive(textwrap.dedent(code), output_hook=listen, timeout=120)
    assert reply["content"]["status"] == "ok", reply["content"]
    return "".join(lines).strip()


def process_of(client) -> psutil.Process:
    """The process in which a kernel's cells run."""
    return psutil.Process(int(said(client, "import os; print(os.getpid())")))


def is_server(process: psutil.Process) -> bool:
    return SERVER in process.cmdline()


def until(condition: Callable[[], object], seconds: float = 20) -> object:
    """What a condition comes to: a true value as soon as it has one, or what it has when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


def gone(pid: int, seconds: float = 20) -> bool:
    return bool(until(lambda: not runs(pid), seconds))


def runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def servers(folder: Path) -> list[psutil.Process]:
    """The fork servers whose sockets lie in a folder."""
    every = [
        (process, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    ]
    return [
        process for process, words in every if SERVER in words and str(folder) in " ".join(words)
    ]


@contextlib.contextmanager
def socket_folder():
    """A folder for the sockets of a test's own fork servers, whose paths must be short; the servers end with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)
        end_servers(Path(folder))


def end_servers(folder: Path):
    """They would wait minutes for somebody else."""
    for process in servers(folder):
        process.terminate()
