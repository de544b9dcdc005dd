"""Finds where a program that does not end waits: the line of each worker and of each process, and who is missing."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Callable, Iterator, Sequence

from ..observer.events import (
    ChildKilled,
    ClusterStrategyRequested,
    ExceptionRaised,
    Outcome,
    ProcessLeft,
    Stack,
    StrategyMade,
)
from .blame import from_loop
from .findings import Evidence, Finding, Location, Text, counted
from .recording import ProcessStacks, Recording, Role

HANGS = "hangs"
Parts = tuple["str | Location", ...]
READING = "waits while it reads a value of all workers"
IN_STEP = "waits in an operation of TensorFlow"
# What a thread waits for, by a part of the path and the function of one of its lines; the first that fits counts.
WAITS = (
    ("/checkpoint/", "waits while it saves or restores a checkpoint"),
    ("/saving/", "waits while it saves or loads a model"),
    (
        "/collective_all_reduce_strategy.py: _initialize",
        "waits for all workers, while it makes a strategy",
    ),
    ("/coordinator/", "waits for the workers of a coordinator"),
    ("/distribute/values.py: _get_cross_replica", READING),
    ("/tensorflow/", IN_STEP),
    ("/multiprocessing/", "waits for another process"),
    ("/concurrent/", "waits for another thread or process"),
    ("/subprocess.py", "waits for another process"),
    ("/queue.py", "waits for an item of a queue"),
    ("/threading.py", "waits for another thread"),
)
HELPER = "multiprocessing.resource_tracker"  # which waits for as long as its program runs
LOOPBACK = "127.", "localhost:"
ANSWER = 0.5  # seconds for an address of this machine


def hangs(recordings: Sequence[Recording], mode: str = HANGS) -> Iterator[Finding]:
    """Yields one finding for a program, or for a cluster, that waited when its time was over."""
    examined = [run for run in recordings if run.role in (Role.WATCHED, Role.TASK)]
    waiting = [run for run in examined if waits(run)]
    if not waiting or any(run.of(ExceptionRaised) for run in examined):
        return
    first = waiting[0]
    message = [part for run in waiting for part in (*waiting_in_words(run), "; ")][:-1]
    missing = missing_in_words(examined, waiting)
    devices = counted(first.devices, "device")
    proof = f"observed on {devices}: nothing was computed when the time was over, after {first.seconds:.0f} s"
    others = {each for run in waiting for each in processes_in_words(run)}
    more = [*map(Text, missing), *sorted(others, key=str)]
    yield Finding(
        mode,
        Location(place_of(first, examined)),
        Evidence.OBSERVED,
        Text(*message, *(part for each in more for part in ("; ", *each))),
        Text(proof),
        (first.devices,),
    )


def waits(run: Recording) -> bool:
    return run.outcome is Outcome.HANGS and bool(run.stacks) and not run.stacks[0].busy


def waiting_at(run: Recording) -> Stack:
    """Returns the program's lines in the main thread of the first process, or else in any thread of any."""
    stacks = [thread.own for process in run.stacks for thread in process.threads]
    return next(filter(None, stacks), ())


def place_of(run: Recording, examined: Sequence[Recording]) -> Stack:
    """Returns where a program waits; if another worker has ended, the line that decided about it comes first."""
    at = waiting_at(run)
    return from_loop(at) if is_in_step(run) and any(map(has_ended, examined)) else at


def waiting_in_words(run: Recording) -> Parts:
    what = what_for(main_lines(run))
    where: Parts = (" at ", Location(waiting_at(run))) if waiting_at(run) else ()
    trains = run.steps or run.of(StrategyMade) or run.last(ClusterStrategyRequested)
    step = f", after {counted(run.steps, 'step')}" if trains else ""
    return (f"{run.task or 'the program'} {what}", *where, step)


def main_lines(run: Recording) -> Stack:
    """Returns all lines of the main thread, those of libraries included."""
    threads = (thread for process in run.stacks[:1] for thread in process.threads)
    return next((thread.lines for thread in threads), ())


def what_for(lines: Stack) -> str:
    """Returns what a thread waits for, by the lines of libraries in which it is."""
    for part, words in WAITS:
        if any(part in f"{line.path}: {line.function}" for line in lines):
            return words
    return "waits"


# Who is missing


def missing_in_words(examined: Sequence[Recording], waiting: Sequence[Recording]) -> Iterator[str]:
    for run in examined:
        if has_ended(run):
            yield f"{run.task} has ended after {counted(run.steps, 'step')}"
    for run in waiting:
        for killed in run.of(ChildKilled):
            yield f"{killed.command!r} was ended by {signal_in_words(killed.signal)}"
        yield from (f"{address} does not answer" for address in silent_addresses(run))
    if len({run.steps for run in waiting}) > 1:
        yield "they are not at the same step"


def has_ended(run: Recording) -> bool:
    """Tells whether this task has come to its end while others wait."""
    return bool(run.task) and run.outcome in (Outcome.FINISHED, Outcome.EXITED)


def processes_in_words(run: Recording) -> Iterator[Text]:
    """Yields what the processes that the program has started do."""
    for process in run.stacks[1:]:
        if HELPER in process.command:
            continue
        name = f"process {process.pid}"
        lines = [thread.own for thread in process.threads if thread.own]
        if process.signal:
            yield Text(f"{name} was ended by {signal_in_words(process.signal)}")
        elif lines:
            yield Text(f"{name} waits at ", Location(lines[0]))
        elif process.threads:
            yield Text(f"{name} {what_for(process.threads[0].lines)}")
        elif process.command:
            yield Text(f"{name} runs: {process.command}")


def signal_in_words(number: int) -> str:
    with contextlib.suppress(ValueError):
        name = signal.Signals(number).name
        reason = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
        return f"{name}{reason}"
    return f"signal {number}"


def silent_addresses(run: Recording) -> list[str]:
    """Returns the tasks of the program's own TF_CONFIG, on this machine, at whose address nobody listens."""
    requested = run.last(ClusterStrategyRequested)
    try:
        config = json.loads(requested.config) if requested and requested.config else {}
        own, jobs = config.get("task", {}), config.get("cluster", {}).items()
        tasks = [(job, i, at) for job, addresses in jobs for i, at in enumerate(addresses)]
        this = own.get("type"), own.get("index")
    except (ValueError, AttributeError, TypeError):
        return []
    return [
        f"{job} {i} ({address})"
        for job, i, address in tasks
        if (job, i) != this
        if not run.task and str(address).startswith(LOOPBACK) and not answers(str(address))
    ]


def answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, ValueError):
        socket.create_connection((host, int(port)), ANSWER).close()
        return True
    return False


# Why others wait


def leaves_early(recordings: Sequence[Recording]) -> bool:
    """Tells whether some tasks have ended, and all others wait in a step, in which those are missing."""
    tasks = [run for run in recordings if run.task]
    others = [run for run in tasks if not has_ended(run)]
    are_some = 0 < len(others) < len(tasks)
    return are_some and all(waits(run) and is_in_step(run) for run in others)


def is_in_step(run: Recording) -> bool:
    return what_for(main_lines(run)) == IN_STEP and not is_saving(run)


def one_waits(recordings: Sequence[Recording], does: Callable[[Recording], bool]) -> bool:
    """Tells whether one of several tasks waits while it does something that the others do not do."""
    tasks = [run for run in recordings if run.task]
    return len(tasks) > 1 and sum(waits(run) and does(run) for run in tasks) == 1


def is_reading(run: Recording) -> bool:
    return what_for(main_lines(run)) == READING


def is_saving(run: Recording) -> bool:
    return any(
        ("/checkpoint/" in line.path or "/saving/" in line.path)
        and any(word in line.function for word in ("save", "write"))
        for process in run.stacks
        for thread in process.threads
        for line in thread.lines
    )


# Programs that ended without telling Python


def abrupt_end(run: Recording) -> str:
    """Returns how a program ended that raised nothing and has not come to its end; nothing for any other."""
    left, fatal = run.last(ProcessLeft), fatal_of(run)
    if left:
        return f"called os._exit({left.status})"
    if run.outcome is Outcome.KILLED and run.status < 0:
        return f"was ended by {signal_in_words(-run.status)}" + (
            f": {fatal.fatal}" if fatal else ""
        )
    if run.outcome is Outcome.HANGS and run.stacks:
        state = "computing" if run.stacks[0].busy else "waiting"
        return f"was still {state} when the time was over, after {run.seconds:.0f} s"
    return ""


def is_aborted(run: Recording) -> bool:
    return run.outcome is Outcome.KILLED and run.status == -signal.SIGABRT


def ended_at(run: Recording) -> Stack:
    """Returns the program's lines at which it was when it ended in such a way."""
    left = run.last(ProcessLeft)
    return left.location if left else waiting_at(run)


def fatal_of(run: Recording) -> ProcessStacks | None:
    return next((process for process in run.stacks if process.fatal), None)


def children_in_words(run: Recording) -> list[str]:
    """Returns which processes of a program that failed were ended by a signal."""
    return [
        f"{each.command!r}, which it started, was ended by {signal_in_words(each.signal)}"
        for each in run.of(ChildKilled)
    ]
