"""A process under examination: it reads nothing, the end of its output is kept, and it ends with all that it has started."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ...processes.python_process import Process
from ..recording import ProcessStacks

MOST_OUTPUT = 1 << 20  # bytes of output that are kept: its end
OUTPUT_GRACE = 5  # seconds for the output of a process that has ended

Streams = tuple[int, int, int]  # descriptors of standard input, output and error


class RunningProcess:
    """Its output is read at once, so that it never waits for a reader."""

    def __init__(self, start: Callable[[Streams], Process], events: Path):
        self.events, self.began = events, time.monotonic()  # what the observer in it writes
        self.unobserved: dict[int, str] = {}  # commands of its processes without an observer
        self.stacks: tuple[ProcessStacks, ...] = ()  # when it was ended by the time limit
        reading, writing = os.pipe()
        with open(os.devnull) as nothing:
            self.process = start((nothing.fileno(), writing, writing))
        os.close(writing)
        self.written = bytearray()
        self.reader = threading.Thread(target=self.read, args=(reading,), daemon=True)
        self.reader.start()

    def read(self, descriptor: int) -> None:
        with open(descriptor, "rb") as stream:
            for chunk in iter(lambda: stream.read1(1 << 16), b""):
                self.written += chunk
                del self.written[:-MOST_OUTPUT]

    def wait(self, seconds: float) -> int | None:
        """Returns its exit status, or None if it has not ended by then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Ends it and its process group. A process that left the group may still hold the output: nobody waits for that."""
        self.kill_group()
        self.process.wait()
        self.reader.join(OUTPUT_GRACE)

    def kill(self) -> None:
        """Kills it while another thread waits for its end."""
        if self.process.returncode is None:
            self.kill_group()

    def kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def output(self) -> str:
        return self.written.decode(errors="replace")


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
