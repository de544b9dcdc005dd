"""Runs a program as all tasks of a cluster on loopback, each in its own process and under its own observer."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from ...observer.events import (
    ClusterDescribed,
    ClusterStrategyRequested,
    Ended,
    ExceptionRaised,
    Outcome,
    StrategyMade,
)
from ...observer.own_cluster import addresses_in, arguments_of_tasks, is_here
from ...processes.cluster import addresses_for
from ...setups import strategies
from ..reading import NewLines, from_json
from ..recording import Recording, Role
from .process_stacks import take_stacks
from .sandbox import Sandbox

AFTER_A_FAILURE = 10  # seconds for the other tasks, once one has failed
BETWEEN_LOOKS = 0.2
ELSEWHERE = (
    "the program describes a cluster of several machines in TF_CONFIG, where nothing is started: give it the address "
    "127.0.0.1 for each worker, or take TF_CONFIG from the environment"
)


def requested_cluster(recording: Recording) -> str:
    """Returns the strategy of several processes that a program makes though it runs alone, or an empty string."""
    requested = recording.last(ClusterStrategyRequested)
    if requested and recording.of(ClusterDescribed, after=requested):
        return ""  # each of its processes is alone, whatever it sets now
    if is_elsewhere(recording):
        return ""
    raised = recording.last(ExceptionRaised)
    own = requested.config if requested else ""
    tasks = sum(map(len, addresses_in(own).values()))
    if own and (recording.outcome is Outcome.HANGS or tasks == 1):
        return ""  # a cluster in which somebody does not answer, or in which it is alone
    if requested:
        return requested.strategy
    return "multi_worker" if raised and "KeyError: 'TF_CONFIG'" in raised.traceback else ""


def own_tasks(recording: Recording, arguments: Sequence[str]) -> list[list[str]]:
    """Returns the arguments of all tasks of a cluster that a program describes by one of its arguments, and that is here."""
    requested = recording.last(ClusterStrategyRequested)
    config = requested.config if requested else ""
    first = 2 if arguments[:1] == ["-m"] else 1
    found = arguments_of_tasks(config, arguments[first:]) if is_here(config) else []
    return [[*arguments[:first], *each] for each in found]


def is_elsewhere(recording: Recording) -> bool:
    """Tells whether a run was ended since the program describes a cluster on other machines."""
    requested = recording.last(ClusterStrategyRequested)
    is_ended = recording.outcome is Outcome.STOPPED and not recording.of(StrategyMade)
    return bool(requested and is_ended and not is_here(requested.config))


def run_tasks(
    sandbox: Sandbox, strategy: str, role: Role, options: Sequence[str] = ()
) -> list[Recording]:
    """Runs the program in all processes of a cluster, each on one device. Servers run until the others have ended.

    A program that describes its cluster itself is started with the arguments of each task.
    """
    tasks = strategies.TABLE[strategy].tasks or {}
    given: list[list[str]] | None = None
    if sandbox.own_tasks:
        tasks, given = {"worker": len(sandbox.own_tasks)}, sandbox.own_tasks
    addresses = addresses_for(tasks)
    running = [
        Task(sandbox, addresses, job, index, options, given[index] if given else None)
        for job, count in tasks.items()
        for index in range(count)
    ]
    leading = [task for task in running if task.job == "chief" or "chief" not in tasks]
    try:
        wait_for(leading, sandbox.program.limit)
    except KeyboardInterrupt:
        sandbox.stopped = True
    over = [task for task in running if task.over]
    if not sandbox.stopped and any(task not in over for task in leading):
        for task in leading:
            task.running.stacks = () if task in over else take_stacks(task.running)
    # Those that wait end first: it would be an error to them if another one ended before.
    for task in sorted(running, key=over.__contains__):
        task.running.kill()
    for task in running:
        task.running.end()
    return [task.recording(role, task in over, task in leading) for task in running]


def wait_for(tasks: list["Task"], limit: float) -> None:
    """Returns when all tasks have ended, or some time after one has failed."""
    latest = time.monotonic() + limit
    while time.monotonic() < latest:
        over = [task for task in tasks if task.over]
        if len(over) == len(tasks):
            return
        if any(task.status != 0 for task in over):
            latest = min(latest, time.monotonic() + AFTER_A_FAILURE)
        time.sleep(BETWEEN_LOOKS)


class Task:
    """The program as one task of a cluster."""

    def __init__(
        self,
        sandbox: Sandbox,
        addresses: dict[str, list[str]],
        job: str,
        index: int,
        options: Sequence[str],
        arguments: list[str] | None = None,
    ):
        self.sandbox, self.job, self.name = sandbox, job, f"{job} {index}"
        self.workers = len(addresses["worker"])
        described = {"cluster": addresses, "task": {"type": job, "index": index}}
        environment = {"TF_CONFIG": json.dumps(described), "GRPC_VERBOSITY": "ERROR"}
        # It stays when it has finished: another one may still be fetching its part of the last sum.
        self.running = sandbox.start(1, ("--stay", *options), environment, arguments)
        self.lines = NewLines(self.running.events)
        self.reported: int | None = None  # the exit status that it will have

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs. A task that stays has reported the status that it will have."""
        for line in self.lines:
            event = from_json(line) if '"Ended"' in line else None
            if isinstance(event, Ended):
                self.reported = event.status
        return self.running.process.poll() if self.reported is None else self.reported

    @property
    def over(self) -> bool:
        return self.status is not None

    def recording(self, role: Role, over: bool, leads: bool) -> Recording:
        """Returns what it has shown. A task that only serves the others is stopped when these have ended."""
        status = self.status if over or not leads else None
        recording = self.sandbox.recording(self.running, role, self.workers, status, self.name)
        if leads or recording.of(ExceptionRaised):
            return recording
        return replace(recording, outcome=Outcome.STOPPED)
