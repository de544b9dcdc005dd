"""Experiments in other processes: the workers and servers of a cluster on loopback, or one with the other Keras.

Each process gets one JSON request on standard input, which names the notebook's source, and answers in one JSON file.
"""

import builtins
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ..base import errors
from ..processes import cluster, request_reply
from ..setups import runtime, strategies
from ..setups.parameters import Setup
from . import checks
from .extract_source import source_of
from .proofs import Experiment, Observations, Proof, Result
from .run_in_process import run_here

WORKER = "strategy_clinic.experiments.workers"


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
        question = {"jobs": named, "source": str(source)}
        tasks = (place.strategy and strategies.TABLE[place.strategy].tasks) or cluster.ALONE
        try:
            answers = cluster.ask_all(WORKER, question, tasks, place.keras, folder, has_failed)
        except (ChildProcessError, TimeoutError) as error:
            return [Result(error=error) for _ in jobs]
        return [merged([answer[job] for answer in answers]) for job in range(len(jobs))]


def has_failed(answer: list[dict[str, Any]]) -> bool:
    """Returns whether a task has an error; a proof that does not hold is none, since all tasks end with that."""
    return any(run["error"] and run["error"]["name"] != "SilentFailure" for run in answer)


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
        cluster.serve()
    values: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(Path(request["source"]).read_text(), request["source"], "exec"), values)
    results = [run_here(values[job["name"]].body, Setup(**job["setup"])) for job in request["jobs"]]
    request_reply.write_answer(request["answer"], list(map(as_json, results)))
    # Stays until it is killed: another worker may still be fetching this one's part of their last all-reduce.
    threading.Event().wait()


def as_json(result: Result) -> dict[str, Any]:
    error = result.error and {"name": type(result.error).__name__, "message": str(result.error)}
    proof = asdict(result.value) if isinstance(result.value, Proof) else None
    return {"error": error, "proof": proof, "observations": result.observations}


if __name__ == "__main__":
    main()
