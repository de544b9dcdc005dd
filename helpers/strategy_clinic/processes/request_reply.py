"""Asks a process and gets an answer, a hang or a crash: the question on standard input, the answer in a file."""

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from ..base.files import write_whole
from .forkserver_client import start_module

PAUSE = 0.01  # seconds between two looks


def asked(module: str, question: dict, environment: dict, log: Path, path: str | None):
    """`python -m module`, given a question; forked from the warm process at `path`, if there is one."""
    with open(log, "w") as said:
        process = start_module(module, environment, said, path)
    with contextlib.suppress(BrokenPipeError):  # it has died already, and `answer_of` says how
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    return process


def answer_of(process, file: Path, deadline: float, log: Path, name: str):
    """What the process has written to the file, as soon as it is there, whether or not the process goes on.

    TimeoutError with its name if nothing is there at the deadline; ChildProcessError if it has ended without.
    """
    while not file.exists():
        ended = process.poll() is not None
        if ended and not file.exists():  # it may have answered between the two looks
            status, said = process.returncode, last_words(log)
            raise ChildProcessError(f"{name} ended with status {status}: {said or 'no output'}")
        if time.monotonic() > deadline:
            raise TimeoutError(name)
        time.sleep(PAUSE)
    return json.loads(file.read_text())


def last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1].strip() if lines else ""


def put_down(process):
    """Ends a process with all that it has started, and lets go of it."""
    process.kill()
    process.wait()
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


# The process's side


def question() -> dict:
    """The line on standard input. Whoever has asked keeps it open, and takes this process along at the end."""
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=die_with_asker, daemon=True).start()
    return given


def die_with_asker():
    sys.stdin.read()
    os._exit(1)


def reply(file: str, answer):
    write_whole(Path(file), json.dumps(answer))
