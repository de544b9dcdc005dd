"""Writes the Python lines of all threads to a file: when a signal asks for them, and when a fatal signal ends the process.

Runs in the program's process: standard library only, and Python 3.9's syntax.
"""

from __future__ import annotations

import faulthandler
import mmap
import signal

# That no program uses, and that no system sends by itself; processes forked from the program have the handler, too.
# macOS has no SIGRTMAX.
ASKING = signal.SIGRTMAX - 7 if hasattr(signal, "SIGRTMAX") else getattr(signal, "SIGUSR2", 0)
COUNTER = 8  # bytes
CHILD = ".child-"


def child_file(events: str, process: int) -> str:
    """Returns the file of events of a process that the program has started, beside the program's."""
    return f"{events}{CHILD}{process}"


def stacks_file(events: str) -> str:
    return f"{events}.stacks"


def steps_file(events: str) -> str:
    return f"{events}.steps"


def write_stacks(events: str, *, at_fatal_signals: bool = True) -> None:
    """Lets this process, and those that it forks, write their stacks beside the file of events."""
    # The handlers use the descriptor for as long as the process lives.
    file = open(stacks_file(events), "ab", buffering=0)  # noqa: SIM115
    if at_fatal_signals:
        faulthandler.enable(file)
    faulthandler.register(ASKING, file, all_threads=True, chain=False)


class StepCounter:
    """The number of steps so far, in a file, so that it outlives the process and costs no system call."""

    def __init__(self, events: str) -> None:
        self.count = 0
        with open(steps_file(events), "w+b") as file:
            file.write(bytes(COUNTER))
            file.flush()
            self.memory = mmap.mmap(file.fileno(), COUNTER)

    def step(self) -> None:
        self.count += 1
        self.memory[:] = self.count.to_bytes(COUNTER, "little")


def read_steps(events: str) -> int:
    """Returns the number of steps that a process has made."""
    try:
        with open(steps_file(events), "rb") as file:
            return int.from_bytes(file.read(COUNTER), "little")
    except FileNotFoundError:
        return 0
