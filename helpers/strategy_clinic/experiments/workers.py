"""Experiments in other processes: the workers and servers of a cluster on loopback, or one with the other Keras.

Each process gets one JSON request on standard input, which names the notebook's source, and answers in one JSON file.
"""

import builtins
import contextlib
import json
import os
import random
import socket
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ..base import errors
from ..processes import python_process, request_reply
from ..setups import runtime, strategies
from ..setups.parameters import Setup
from . import checks
from .extract_source import source_of
from .proofs import Experiment, Observations, Proof, Result
from .run_in_process import run_here

WORKER = "strategy_clinic.experiments.workers"
SECONDS = 180
PORTS = range(20_000, 32_000)  # below those that a system gives to whoever asks for any
AFTER_FAILURE = 5  # seconds that the others get once one task has failed
Task = tuple[str, int]  # a job of a cluster, and the index of the process in it


class Place(NamedTuple):
    """The processes that runs can share: a cluster's for a strategy, or, without one, a single process."""

    strategy: str
    devices: int
    keras: int

    def __str__(self) -> str:
        return "in worker processes" if self.strategy else "in a process of its own"


def place_of(setup: Setup) -> Place | None:
    """Returns the processes that a setup needs, or None if it runs in this one."""
    row = strategies.TABLE[setup.strategy]
    if row.tasks and not row.missing():
        return Place(setup.strategy, setup.devices, setup.keras)
    return Place("", 1, setup.keras) if runtime.generation() not in (None, setup.keras) else None


# The notebook's side


def launch(place: tuple[str, int, int], jobs: list[tuple[Experiment, Setup]]) -> list[Result]:
    """Runs experiments under their setups in the processes of a place, and returns a result for each."""
    place = Place(*place)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # A file, since AutoGraph reads the source of what it traces.
        source = folder / "notebook.py"
        source.write_text(source_of([run for run, _ in jobs]))
        named = [{"name": run.__name__, "setup": asdict(setup)} for run, setup in jobs]
        request = {"jobs": named, "source": str(source)}
        tasks = place.strategy and strategies.TABLE[place.strategy].tasks
        cluster = addresses_for(tasks or {"alone": 1})
        processes = {
            (job, index): start_task((job, index), cluster, place.keras, request, folder)
            for job, addresses in cluster.items()
            for index in range(len(addresses))
        }
        try:
            return collect(processes, len(jobs), folder)
        except ChildProcessError as error:
            return [Result(error=error) for _ in jobs]
        except TimeoutError as error:
            late = TimeoutError(f"{error} did not finish within {SECONDS} seconds.")
            return [Result(error=late) for _ in jobs]
        finally:
            for process in processes.values():
                request_reply.end(process)


def start_task(
    task: Task, cluster: dict[str, list[str]], keras: int, request: dict[str, Any], folder: Path
) -> Any:
    """Starts one process. Its temporary files go into the folder, which is deleted at the end."""
    job, index = task
    environment = os.environ | {
        "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": str(folder),
    }
    if job != "alone":
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        environment |= {"TF_CONFIG": json.dumps(config), "GRPC_VERBOSITY": "ERROR"}
    answer = answer_file(folder, task)
    request = request | {"answer": str(answer), "serve": "chief" in cluster and job != "chief"}
    forkserver = python_process.running_fork_server()
    return request_reply.ask(WORKER, request, environment, answer.with_suffix(".log"), forkserver)


def addresses_for(tasks: dict[str, int]) -> dict[str, list[str]]:
    """Returns the addresses on loopback at which the tasks of each job listen."""
    ports = iter(free_ports(sum(tasks.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in tasks.items()}


def free_ports(count: int) -> list[int]:
    """Returns ports that nobody listens at.

    Tasks open them a second and more later. Until then any program that starts could be given one from the system's
    own range, and a notebook with the same seed of Python's `random` would choose the same ones.
    """
    ports: list[int] = []
    generator = random.SystemRandom()
    with contextlib.ExitStack() as stack:
        while len(ports) < count:
            port, listener = generator.choice(PORTS), stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # it is taken
                listener.bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def answer_file(folder: Path, task: Task) -> Path:
    return folder / f"answer-{task[0]}-{task[1]}.json"


def collect(processes: dict[Task, Any], jobs: int, folder: Path) -> list[Result]:
    """Waits for the answers: the chief's, or all where there is none. Returns a result for each job.

    Raises TimeoutError with the name of a process that does not answer, and ChildProcessError for one that dies.
    """
    tasks = [task for task in processes if ("chief", 0) not in processes or task[0] == "chief"]
    answers: dict[Task, list[dict[str, Any]]] = {}
    deadline = time.monotonic() + SECONDS
    while len(answers) < len(tasks) and time.monotonic() <= deadline:
        for task in [task for task in tasks if task not in answers]:
            file, name = answer_file(folder, task), "worker process {} {}".format(*task)
            with contextlib.suppress(TimeoutError):  # no answer yet
                log = file.with_suffix(".log")
                answers[task] = request_reply.wait_for_answer(processes[task], file, 0, log, name)
        if has_failed(answers):  # then others may wait for that task for ever
            deadline = min(deadline, time.monotonic() + AFTER_FAILURE)
        time.sleep(request_reply.PAUSE)
    missing = [task for task in tasks if task not in answers]
    if missing and not has_failed(answers):
        raise TimeoutError("worker process {} {}".format(*missing[0]))
    in_order = [answers[task] for task in tasks if task in answers]
    return [merged([answer[job] for answer in in_order]) for job in range(jobs)]


def has_failed(answers: dict[Task, list[dict[str, Any]]]) -> bool:
    """Returns whether a task has an error; a proof that does not hold is none, since all tasks end with that."""
    failures = [run["error"] for answer in answers.values() for run in answer if run["error"]]
    return any(error["name"] != "SilentFailure" for error in failures)


def merged(runs: list[dict[str, Any]]) -> Result:
    """Returns the result of one job in several processes: the first error, else the first proof that does not hold."""
    observations: Observations = {}  # each process knows its own copies only
    for label, group in (item for run in runs for item in run["observations"].items()):
        for name, devices in group.items():
            known = observations.setdefault(label, {}).setdefault(name, [])
            known += [device for device in devices if device not in known]
    failures = [exception_named(**run["error"]) for run in runs if run["error"]]
    if failures:
        return Result(None, failures[0], observations)
    proofs = [Proof(**run["proof"]) for run in runs if run["proof"]]
    value = min(proofs, key=lambda proof: proof.holds, default=None)
    return Result(value, None, observations)


def exception_named(name: str, message: str) -> Exception:
    """Returns an exception of this class; of a new one where this process has none of that name."""
    kinds = [getattr(module, name, None) for module in (builtins, checks, errors)]
    kind: type[Exception] = next(filter(None, kinds), type(name, (Exception,), {}))
    return kind(message)


# The process's side


def main() -> None:
    request = request_reply.read_question()
    runtime.start_tensorflow()
    if request["serve"]:
        serve()
    values: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(Path(request["source"]).read_text(), request["source"], "exec"), values)
    results = [run_here(values[job["name"]].body, Setup(**job["setup"])) for job in request["jobs"]]
    request_reply.write_answer(request["answer"], list(map(as_json, results)))
    # Stays until it is killed: another worker may still be fetching this one's part of their last all-reduce.
    threading.Event().wait()


def serve() -> None:
    """Runs this task's server of the cluster in TF_CONFIG, for good."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    tf.distribute.Server(cluster, job, index, protocol="grpc").join()


def as_json(result: Result) -> dict[str, Any]:
    error = result.error and {"name": type(result.error).__name__, "message": str(result.error)}
    proof = asdict(result.value) if isinstance(result.value, Proof) else None
    return {"error": error, "proof": proof, "observations": result.observations}


if __name__ == "__main__":
    main()
