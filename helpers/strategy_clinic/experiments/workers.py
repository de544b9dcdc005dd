"""Processes of their own: workers and servers on loopback, or one process that holds the other Keras generation.

What travels is source text, one JSON request on standard input and one JSON file back; nothing is pickled.
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

from ..base import errors
from ..processes import forkserver_client, request_reply
from ..setups import runtime, strategies, tensorflow_patches
from ..setups.parameters import Setup
from . import checks
from .extract_source import definitions
from .proofs import Proof, Result
from .run_in_process import run_here

WORKER = "strategy_clinic.experiments.workers"
SECONDS = 180
PORTS = range(20_000, 32_000)  # below those that a system gives to whoever asks for any
AFTER_FAILURE = 5  # seconds that the others get once one task has failed


def place(setup):
    """None if the setup runs in this process; otherwise what the processes must share: strategy, devices, Keras."""
    row = strategies.TABLE[setup.strategy]
    if row.tasks and not row.missing():
        return (setup.strategy, setup.devices, setup.keras)
    return ("", 1, setup.keras) if runtime.generation() not in (None, setup.keras) else None


# The notebook's side


def launch(where, jobs) -> list[Result]:
    """Starts the processes, hands each the notebook's definitions and the jobs, and puts their answers together."""
    strategy, _, keras = where
    tasks = (strategies.TABLE[strategy].tasks if strategy else None) or {"alone": 1}
    request = {"jobs": [{"name": run.__name__, "setup": asdict(setup)} for run, setup in jobs]}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # A file, since AutoGraph reads the source of what it traces.
        source = Path(folder) / "notebook.py"
        source.write_text(definitions([run for run, _ in jobs]))
        request["source"] = str(source)
        started = start_tasks(tasks, keras, request, Path(folder))
        try:
            return collect(started, len(jobs), Path(folder))
        except ChildProcessError as error:
            return [Result(error=error) for _ in jobs]
        except TimeoutError as late:
            words = f"{late} did not finish within {SECONDS} seconds."
            return [Result(error=TimeoutError(words)) for _ in jobs]
        finally:
            for process in started.values():
                request_reply.put_down(process)


def start_tasks(tasks: dict, keras: int, request: dict, folder: Path) -> dict:
    cluster = addresses_for(tasks)
    return {
        (job, index): start_one((job, index), cluster, keras, request, folder)
        for job, count in tasks.items()
        for index in range(count)
    }


def start_one(task, cluster: dict, keras: int, request: dict, folder: Path):
    """Starts one process. Its temporary files go into the folder, which is deleted at the end."""
    described = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}}
    environment = os.environ | {
        "TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": str(folder),
    }
    if task[0] != "alone":
        environment |= {"TF_CONFIG": json.dumps(described), "GRPC_VERBOSITY": "ERROR"}
    serves = "chief" in cluster and task[0] != "chief"
    message = request | {"answer": str(answer_place(folder, task)), "serve": serves}
    log = answer_place(folder, task).with_suffix(".log")
    return request_reply.asked(
        WORKER, message, environment, log, os.environ.get(forkserver_client.ZYGOTE)
    )


def addresses_for(tasks: dict[str, int]) -> dict[str, list[str]]:
    """Where each task of a cluster listens on loopback."""
    ports = iter(free_ports(sum(tasks.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in tasks.items()}


def free_ports(count: int) -> list[int]:
    """Tasks open them a second and more later: until then nobody else may be given one, as any kernel that starts would be
    from the system's own range. A notebook has seeded Python's usual dice, so that two of them would take the same."""
    found, dice = [], random.SystemRandom()
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            port, listener = dice.choice(PORTS), stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # it is taken
                listener.bind(("127.0.0.1", port))
                found.append(port)
    return found


def answer_place(folder: Path, task) -> Path:
    return folder / f"answer-{task[0]}-{task[1]}.json"


def collect(started: dict, jobs: int, folder: Path) -> list[Result]:
    """Waits for the tasks that answer and puts their answers together."""
    tasks = [task for task in started if ("chief", 0) not in started or task[0] == "chief"]
    answers, deadline = {}, time.monotonic() + SECONDS
    while len(answers) < len(tasks):
        waiting = [task for task in tasks if task not in answers]
        answers |= {
            task: said for task in waiting if (said := heard_from(started[task], task, folder))
        }
        if failed(answers):  # then others may wait for it for ever
            deadline = min(deadline, time.monotonic() + AFTER_FAILURE)
        if time.monotonic() > deadline:
            break
        time.sleep(request_reply.PAUSE)
    missing = [task for task in tasks if task not in answers]
    if missing and not failed(answers):
        raise TimeoutError("worker process {} {}".format(*missing[0]))
    heard = [answers[task] for task in tasks if task in answers]
    return [revive([answer[i] for answer in heard]) for i in range(jobs)]


def heard_from(process, task, folder: Path) -> list[dict] | None:
    """What a task has answered by now."""
    file, name = answer_place(folder, task), f"worker process {task[0]} {task[1]}"
    with contextlib.suppress(TimeoutError):
        return request_reply.answer_of(process, file, 0, file.with_suffix(".log"), name)


def failed(answers: dict) -> bool:
    """Whether one has an error, and not merely a proof that does not hold: all tasks end with that."""
    failures = [each["error"] for answer in answers.values() for each in answer if each["error"]]
    return any(each["name"] != "SilentFailure" for each in failures)


def revive(answers: list[dict]) -> Result:
    """One result from what every process answered: the first error, else the first proof that does not hold."""
    seen = merged([answer["seen"] for answer in answers])
    failures = [named_error(**answer["error"]) for answer in answers if answer["error"]]
    if failures:
        return Result(error=failures[0], seen=seen)
    proofs = [Proof(**answer["proof"]) for answer in answers if answer["proof"]]
    return Result(min(proofs, key=lambda proof: proof.holds, default=None), seen=seen)


def merged(parts: list[dict]) -> dict:
    """Each process knows its own copies only; together they are all copies, without repeats and in order."""
    whole = {}
    for label, name, where in (
        (k, n, w) for part in parts for k, v in part.items() for n, w in v.items()
    ):
        places = whole.setdefault(label, {}).setdefault(name, [])
        places.extend(device for device in where if device not in places)
    return whole


def named_error(name: str, message: str) -> Exception:
    """An exception of the same name and message; a class that this process does not know is made for it."""
    known = [getattr(module, name, None) for module in (builtins, checks, errors)]
    made = type(name, (Exception,), {})
    return next((kind for kind in known if kind), made)(message)


# The process's side


def main():
    request = request_reply.question()
    runtime.start_tensorflow()
    tensorflow_patches.cut_short()
    if request["serve"]:
        serve()
    namespace = {"__name__": "__main__"}
    exec(compile(Path(request["source"]).read_text(), request["source"], "exec"), namespace)
    results = [
        run_here(namespace[job["name"]].body, Setup(**job["setup"])) for job in request["jobs"]
    ]
    request_reply.reply(request["answer"], [as_plain(result) for result in results])
    # Stays until it is killed: another worker may still be fetching this one's part of their last all-reduce.
    threading.Event().wait()


def serve():
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    task = (resolver.task_type, resolver.task_id)
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=task[0], task_index=task[1], protocol="grpc"
    ).join()


def as_plain(result: Result) -> dict:
    error = result.error and {"name": type(result.error).__name__, "message": str(result.error)}
    proof = asdict(result.value) if isinstance(result.value, Proof) else None
    return {"error": error, "proof": proof, "seen": result.seen}


if __name__ == "__main__":
    main()
