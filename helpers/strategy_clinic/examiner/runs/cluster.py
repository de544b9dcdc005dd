"""Programs of several processes: each task of a cluster on loopback runs the program, and each is watched."""

import json
import time

from ...experiments.workers import addresses_for
from ...setups import strategies
from ..recording import Observation, read_facts
from .process import Running
from .sandbox import Workplace

AFTER_A_FAILURE = 10  # seconds for the others, once one has failed
BETWEEN_LOOKS = 0.2


def asked_for(run: Observation) -> str:
    """The strategy of several processes that a program makes, though it runs alone; it may miss TF_CONFIG before that."""
    missing = "KeyError: 'TF_CONFIG'" in run.last("raised").get("text", "")
    return run.last("cluster").get("strategy", "multi_worker" if missing else "")


def run_tasks(place: Workplace, kind: str, *options: str) -> list[Observation]:
    """One run in all processes of a cluster, each on one device. Servers have no end of their own."""
    tasks = strategies.TABLE[kind].tasks
    addresses = addresses_for(tasks)
    started = {
        (job, index): Task(place, addresses, job, index, options)
        for job, count in tasks.items()
        for index in range(count)
    }
    answering = [
        each for (job, _), each in started.items() if job == "chief" or "chief" not in tasks
    ]
    try:
        wait_for(answering, place.program.limit)
    except KeyboardInterrupt:
        place.stopped = True
    over = [each for each in started.values() if each.over]
    for each in started.values():
        each.running.end()
    return [each.observed(each in over, each in answering) for each in started.values()]


def wait_for(tasks: list, limit: float):
    """Until all have come to their ends, or until one has failed and the others had their time."""
    latest = time.monotonic() + limit
    while time.monotonic() < latest:
        over = [each for each in tasks if each.over]
        if len(over) == len(tasks):
            return
        if any(each.failed for each in over):
            latest = min(latest, time.monotonic() + AFTER_A_FAILURE)
        time.sleep(BETWEEN_LOOKS)


class Task:
    """The program as one task of the cluster."""

    def __init__(self, place: Workplace, addresses: dict, job: str, index: int, options):
        self.place, self.name, self.began = place, f"{job} {index}", time.monotonic()
        self.size, self.facts = sum(map(len, addresses.values())), place.new_facts()
        described = {"cluster": addresses, "task": {"type": job, "index": index}}
        given = {"TF_CONFIG": json.dumps(described), "GRPC_VERBOSITY": "ERROR"}
        # It stays when it has finished: another one may still be fetching its part of the last sum.
        command = place.command(self.facts, 1, ("--seed", "--stay", *options))
        self.running = Running(lambda streams: place.started(command, streams, given))
        self.workers = len(addresses["worker"])

    def ended(self) -> dict:
        return next((each for each in read_facts(self.facts)[::-1] if each["fact"] == "ended"), {})

    @property
    def over(self) -> bool:
        return self.running.process.poll() is not None or bool(self.ended())

    @property
    def failed(self) -> bool:
        """Of one that is over: whether it came to no good end."""
        return self.ended().get("status", 1) != 0

    def observed(self, over: bool, answers: bool) -> Observation:
        ended = self.ended().get("status", self.running.process.returncode)
        status = ended if over or not answers else None
        found = self.place.observation(
            self.name, self.workers, self.facts, self.running.output, status, self.began
        )
        return found if answers or found.of("raised") else found.but(ended="stopped")
