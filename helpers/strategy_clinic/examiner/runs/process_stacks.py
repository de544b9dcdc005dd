"""Where the processes of a program wait: the Python lines of all of their threads, asked for by signals, without a debugger."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...observer.events import Frame
from ...observer.stacks import ASKING, stacks_file
from ..recording import ProcessStacks, ThreadStack
from .process import RunningProcess

PROC = Path("/proc")
THREAD = re.compile(r"^(?:Current thread|Thread) 0x[^\n]*:\n((?:  [^\n]*\n?)*)", re.MULTILINE)
LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
FATAL = re.compile(r"^Fatal Python error: ([^\n]+)", re.MULTILINE)
LONGEST_COMMAND = 120
ANSWER, PAUSE = 3.0, 0.1  # seconds for a process to write its stacks
LOOKS, BETWEEN_LOOKS = 10, 0.1  # at whether any thread computes
BUSY = 0.3  # share of the looks in which some thread does
MOST_WRITTEN = 10_000  # characters, meanwhile, of a program that waits and says so
# Environment of processes that the program starts: at SIGABRT they write their stacks, too.
ENVIRONMENT = {"PYTHONFAULTHANDLER": "1"}


class Seen(NamedTuple):
    """What the system says of a process."""

    pid: int
    parent: int
    group: int
    state: str
    status: int  # of a process that has ended and that nobody has waited for


# Processes


def processes_of(leader: int) -> list[Seen]:
    """Returns the process, those of its group and those that come from it, where the system can list them."""
    seen = {pid: each for pid in pids() if (each := look_at(pid))}
    found = {pid for pid, each in seen.items() if leader in (pid, each.group)} - {os.getpid()}
    while more := {each.pid for each in seen.values() if each.parent in found} - found:
        found |= more
    return [seen[pid] for pid in sorted(found, key=lambda pid: (pid != leader, pid))]


def pids() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(PROC) if name.isdecimal()]
    return []


def look_at(pid: int) -> Seen | None:
    fields = fields_of(PROC / str(pid))
    return Seen(pid, int(fields[1]), int(fields[2]), fields[0], int(fields[-1])) if fields else None


def fields_of(place: Path) -> list[str]:
    """Returns what follows the name of a process or a thread in proc(5): its state, its parent, its group, ..."""
    with suppress(OSError):
        return (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


def command_of(pid: int) -> str:
    with suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return " ".join(map(os.fsdecode, filter(None, words)))[:LONGEST_COMMAND]
    return ""


def catches(pid: int, number: int) -> bool:
    """Tells whether the process has a handler for the signal; without one, the signal would end it."""
    with suppress(OSError):
        status = (PROC / str(pid) / "status").read_text(errors="replace")
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
        return bool(caught and int(caught[1], 16) >> (number - 1) & 1)
    return False


def is_busy(leader: int) -> bool:
    """Tells whether some thread computes, or would if it got a processor: such a program is slow, and does not wait.

    One that writes faster than its output is read waits for the reader most of the time.
    """
    computing, written = 0, written_by(leader)
    for _ in range(LOOKS):
        states = [state for each in processes_of(leader) for state in thread_states(each.pid)]
        computing += any(state in "RD" for state in states)
        time.sleep(BETWEEN_LOOKS)
    return computing > BUSY * LOOKS or written_by(leader) - written > MOST_WRITTEN


def written_by(leader: int) -> int:
    """Returns the characters that the processes of a program have written."""
    written = 0
    for each in processes_of(leader):
        with suppress(OSError):
            counts = (PROC / str(each.pid) / "io").read_text()
            written += sum(map(int, re.findall(r"^wchar: (\d+)", counts, re.MULTILINE)))
    return written


def thread_states(pid: int) -> list[str]:
    with suppress(OSError):
        found = [fields_of(place) for place in (PROC / str(pid) / "task").iterdir()]
        return [fields[0] for fields in found if fields]
    return []


# Stacks


def take_stacks(running: RunningProcess) -> tuple[ProcessStacks, ...]:
    """Asks all processes of a program that runs for the lines where their threads are, the program's own first."""
    leader = running.process.pid
    busy = is_busy(leader)
    found = []
    for seen in processes_of(leader):
        if seen.state == "Z":
            killed = os.WTERMSIG(seen.status) if os.WIFSIGNALED(seen.status) else 0
            found.append(ProcessStacks(seen.pid, command_of(seen.pid), (), False, signal=killed))
        else:
            text = ask(running, seen.pid)
            found.append(ProcessStacks(seen.pid, command_of(seen.pid), threads_in(text), busy))
    return tuple(found)


def ask(running: RunningProcess, pid: int) -> str:
    """Returns what a process writes about its stacks; nothing if it is no Python, or cannot be asked."""
    if catches(pid, ASKING):
        path = Path(stacks_file(str(running.events)))
        return answer(pid, ASKING, lambda: path.read_text(errors="replace"))
    if catches(pid, signal.SIGABRT):
        return answer(pid, signal.SIGABRT, lambda: running.output)
    return ""


def answer(pid: int, number: int, read: Callable[[], str]) -> str:
    """Sends a signal and returns what was written after it, once no more comes."""
    with suppress(OSError):
        before = len(read())
        os.kill(pid, number)
        latest, last = time.monotonic() + ANSWER, ""
        while time.monotonic() < latest:
            time.sleep(PAUSE)
            text = read()[before:]
            if text and text == last:
                return text
            last = text
        return last
    return ""


def threads_in(text: str) -> tuple[ThreadStack, ...]:
    """Returns the stacks in what Python's `faulthandler` has written, that of the main thread, which comes last, first."""
    stacks = [
        tuple(Frame(path, int(line), name) for path, line, name in LINE.findall(frames))
        for frames in THREAD.findall(text)
    ]
    return tuple(ThreadStack(stack, ()) for stack in stacks[::-1])


def fatal_stacks(running: RunningProcess) -> tuple[ProcessStacks, ...]:
    """Returns where the processes were that a fatal signal has ended, as they have written it themselves."""
    path = Path(stacks_file(str(running.events)))
    own = path.read_text(errors="replace") if path.exists() else ""
    return tuple(
        ProcessStacks(pid, "", threads_in(text[match.start() :]), True, fatal=match[1])
        for pid, text in ((running.process.pid, own), (0, running.output))
        for match in list(FATAL.finditer(text))[:1]
    )
