"""Asks a process and gets a reply, a hang or a crash: the question on standard input, the answer in a file."""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.files import write_whole
from .python_process import Process, start_module

PAUSE = 0.01  # seconds between two looks for an answer


def ask(
    module: str,
    question: dict[str, Any],
    environment: Mapping[str, str],
    log: Path,
    server: str | None,
) -> Process:
    """Starts `python -m module` and gives it a question; forked by the fork server if there is one."""
    with open(log, "w") as output:
        process = start_module(module, environment, output, server)
    assert process.stdin
    with contextlib.suppress(BrokenPipeError):  # it has died already; `wait_for_answer` says how
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    return process


def wait_for_answer(process: Process, file: Path, deadline: float, log: Path, name: str) -> Any:
    """Returns what the process has written to the file as soon as it is there, whether or not the process goes on.

    Raises TimeoutError with its name if nothing is there at the deadline, ChildProcessError if it has ended without.
    """
    while not file.exists():
        ended = process.poll() is not None
        if ended and not file.exists():  # it may have answered between the two looks
            words = last_line(log) or "no output"
            raise ChildProcessError(f"{name} ended with status {process.returncode}: {words}")
        if time.monotonic() > deadline:
            raise TimeoutError(name)
        time.sleep(PAUSE)
    return json.loads(file.read_text())


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1].strip() if lines else ""


def end(process: Process) -> None:
    """Ends a process and closes what led to it."""
    process.kill()
    process.wait()
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


# The process's side


def read_question() -> dict[str, Any]:
    """Returns the line on standard input. This process ends when the one that asked closes that, as by its own end."""
    question: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=exit_at_end_of_input, daemon=True).start()
    return question


def exit_at_end_of_input() -> None:
    sys.stdin.read()
    os._exit(1)


def write_answer(file: str | Path, answer: object) -> None:
    write_whole(Path(file), json.dumps(answer))
