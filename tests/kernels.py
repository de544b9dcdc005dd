"""Kernels as their users see them: started, asked, and gone."""

import contextlib
import textwrap
import time
from pathlib import Path

import psutil
from jupyter_client.manager import start_new_kernel


@contextlib.contextmanager
def kernel(**options):
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


def gone(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def end_warm(folder: Path):
    """The warm process would wait minutes for somebody else."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "strategy_clinic.processes.forkserver" in words and str(folder) in " ".join(words):
            process.terminate()
