"""Runs a program on several numbers of devices at the same time, as far as processors and memory allow."""

import math
import re
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...base.errors import UserError
from ..recording import Recording, Role
from .process import processors
from .sandbox import Sandbox

MEMORY_OF_A_RUN = 3 << 30  # bytes that must be free for each run at the start
LEAST_MEMORY = 1 << 30  # bytes below which the runs beside the first one are ended
BETWEEN_LOOKS = 0.2  # seconds
MEMORY, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
LIMIT_AND_USE = "memory.max", "memory.current"


class RunBeside:
    """A run in a copy of the folder of its own, in a thread of its own."""

    def __init__(self, sandbox: Sandbox, role: Role, devices: int):
        self.role, self.devices = role, devices
        self.sandbox = sandbox.twin(f"beside-{role.value}-{devices}")
        self.result: Recording | None = None
        self.ended = threading.Event()
        self.began = self.discarded = False
        self.beginning = threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        threading.Thread(target=self.watch_memory, daemon=True).start()

    def run(self) -> None:
        sandbox = self.sandbox
        try:
            with suppress(UserError):  # no room for the copy: the run is made alone, and says so
                sandbox.files.restore(sandbox.files.initial)
                if self.is_needed() and self.begin():
                    self.result = sandbox.run(self.role, self.devices)
        finally:
            self.ended.set()

    def is_needed(self) -> bool:
        """Waits until the first run makes several replicas; returns False if it never does, or this run is discarded."""
        first = self.sandbox.first
        while not (first.is_over or self.discarded or first.replicas > 1):
            time.sleep(BETWEEN_LOOKS)
            first.look()
        return first.replicas > 1

    def begin(self) -> bool:
        with self.beginning:
            self.began = not self.discarded
            return self.began

    def cancel(self) -> bool:
        """Keeps the run from beginning; returns False if it has begun."""
        with self.beginning:
            self.discarded = True
            return not self.began

    def watch_memory(self) -> None:
        while not self.ended.wait(BETWEEN_LOOKS):
            if free_memory() < LEAST_MEMORY:
                return self.kill()

    def recording(self) -> Recording | None:
        """Waits for the end; returns None if the run was not made, or did not finish, which another may have caused."""
        self.ended.wait()
        return self.result if self.result and self.result.finished else None

    def kill(self) -> None:
        self.discarded = True
        if self.sandbox.running:
            self.sandbox.running.kill()

    def end(self) -> None:
        """Ends the run, and removes its copy of the folder."""
        while not self.ended.is_set():
            self.kill()  # again, if it was just being started
            self.ended.wait(BETWEEN_LOOKS)
        self.thread.join()
        self.sandbox.files.end()
        shutil.rmtree(self.sandbox.place, ignore_errors=True)


@contextmanager
def runs_beside(
    sandbox: Sandbox, role: Role, counts: Sequence[int], most: int
) -> Iterator[dict[int, RunBeside]]:
    """Starts runs on some of these numbers of devices, `most` of them, and ends afterwards what still goes on."""
    beside: dict[int, RunBeside] = {}
    try:
        for count in list(counts)[::-1][:most]:
            beside[count] = RunBeside(sandbox, role, count)
        yield beside
    finally:
        for run in beside.values():
            run.end()


# What the machine allows


def most_beside() -> int:
    """Returns how many runs may go on beside one: all have a processor and enough memory."""
    return max(0, int(min(processors(), free_memory() // MEMORY_OF_A_RUN)) - 1)


def free_memory() -> float:
    """Returns bytes that processes may still take; 0 where the system does not say so."""
    with suppress(OSError):
        found = re.search(r"MemAvailable:\s+(\d+) kB", MEMORY.read_text())
        return min(int(found[1]) << 10 if found else 0, free_in_container())
    return 0


def free_in_container() -> float:
    with suppress(OSError, ValueError):  # the limit may be the word "max"
        limit, used = (int((CONTAINER / name).read_text()) for name in LIMIT_AND_USE)
        return max(0, limit - used)
    return math.inf
