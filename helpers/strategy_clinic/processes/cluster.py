"""The processes of a cluster on loopback, or one alone: each gets one JSON question on standard input and answers in a file."""

import contextlib
import json
import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import pool, python_process, request_reply

SECONDS = 180
PORTS = range(20_000, 32_000)  # below those that a system gives to whoever asks for any
AFTER_FAILURE = 5  # seconds that the others get once one task has failed
ALONE = {"alone": 1}
Task = tuple[str, int]  # a job of a cluster, and the index of the process in it


def ask_all(
    module: str,
    question: dict[str, Any],
    tasks: Mapping[str, int],
    keras: int,
    folder: Path,
    has_failed: Callable[[Any], bool],
    seconds: float = SECONDS,
    environment: Mapping[str, str] = os.environ,
) -> list[Any]:
    """Runs a module in a process for each task and returns their answers: the chief's alone where there is one.

    Raises TimeoutError with a sentence if a process does not answer, and ChildProcessError for one that dies.
    """
    cluster = addresses_for(tasks)
    processes = {
        (job, index): start_task(
            module, (job, index), cluster, keras, question, folder, environment
        )
        for job, addresses in cluster.items()
        for index in range(len(addresses))
    }
    pool.RUNNING.update(processes.values())
    try:
        return collect(processes, folder, has_failed, seconds)
    except TimeoutError as error:
        raise TimeoutError(f"{error} did not finish within {seconds} seconds.") from None
    finally:
        for process in processes.values():
            pool.RUNNING.discard(process)
            request_reply.end(process)


def start_task(
    module: str,
    task: Task,
    cluster: dict[str, list[str]],
    keras: int,
    question: dict[str, Any],
    folder: Path,
    given: Mapping[str, str],
) -> Any:
    """Starts one process. Its temporary files go into the folder, which is deleted at the end."""
    job, index = task
    environment = dict(given) | {
        "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": str(folder),
    }
    if job != "alone":
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        environment |= {"TF_CONFIG": json.dumps(config), "GRPC_VERBOSITY": "ERROR"}
    answer = answer_file(folder, task)
    question = question | {"answer": str(answer), "serve": "chief" in cluster and job != "chief"}
    server = python_process.running_fork_server(given)
    return request_reply.ask(module, question, environment, answer.with_suffix(".log"), server)


def addresses_for(tasks: Mapping[str, int]) -> dict[str, list[str]]:
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


def collect(
    processes: dict[Task, Any], folder: Path, has_failed: Callable[[Any], bool], seconds: float
) -> list[Any]:
    """Waits for the answers: the chief's, or all where there is none."""
    tasks = [task for task in processes if ("chief", 0) not in processes or task[0] == "chief"]
    answers: dict[Task, Any] = {}
    failed = False
    deadline = time.monotonic() + seconds
    while len(answers) < len(tasks) and time.monotonic() <= deadline:
        for task in [task for task in tasks if task not in answers]:
            file, name = answer_file(folder, task), "worker process {} {}".format(*task)
            with contextlib.suppress(TimeoutError):  # no answer yet
                log = file.with_suffix(".log")
                answers[task] = request_reply.wait_for_answer(processes[task], file, 0, log, name)
        if not failed and any(map(has_failed, answers.values())):
            failed = True  # others may wait for that task for ever
            deadline = min(deadline, time.monotonic() + AFTER_FAILURE)
        time.sleep(request_reply.PAUSE)
    missing = [task for task in tasks if task not in answers]
    if missing and not failed:
        raise TimeoutError("worker process {} {}".format(*missing[0]))
    return [answers[task] for task in tasks if task in answers]


def serve() -> None:
    """Runs this task's server of the cluster in TF_CONFIG, for good."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    tf.distribute.Server(cluster, job, index, protocol="grpc").join()
