"""Runs programs, each in a new Python process, and says what each printed and what it raised."""

import builtins
import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base import errors
from ..base.errors import Unavailable
from ..processes import cluster, python_process
from ..setups import strategies
from ..setups.parameters import Setup
from . import checks
from .checks import SilentFailure
from .error_text import last_line
from .switches import for_setup

# By label and variable, the devices on which a program has copies of it.
Observations = dict[str, dict[str, list[str]]]
CHILD = "strategy_clinic.programs.child"
AT_ONCE = 2  # programs that run side by side
SECONDS = 90
MOST_SHOWN = 300  # characters of a message


@dataclass(frozen=True)
class Job:
    """A program, the setup whose lines it gets, the names of the objects whose variables are looked up at its end.

    A reason says why the program has no meaning under this setup; then it is not run.
    """

    text: str
    setup: Setup
    observed: tuple[str, ...] = ()
    reason: str = ""
    isolated: bool = False  # from the network and files; whatever it leaves behind is killed
    seconds: float = SECONDS


@dataclass(frozen=True)
class Run:
    """What one run of a program printed, and the error that it ended in with its line, if any."""

    printed: str = ""
    error: Exception | None = None
    line: int = 0
    observations: Observations = field(default_factory=dict)
    network: str = ""  # how an isolated program was kept from the network
    files: str = ""  # how files were protected from it
    ended: bool = True  # by itself, even if with an error

    def shown(self, text: str) -> str:
        """Returns what a reader sees of the run: what was printed, and the failing line with the error."""
        if self.error is None or isinstance(self.error, Unavailable | SilentFailure):
            return self.printed
        line = text.splitlines()[self.line - 1].split("  #")[0].strip() if self.line else ""
        where = f"line {self.line}: {line}\n" if line else ""
        return f"{self.printed}{where}{type(self.error).__name__}: {cut(last_line(self.error))}\n"


def prepare() -> None:
    """Starts the fork server, while the kernel imports TensorFlow."""
    threading.Thread(target=python_process.fork_server, daemon=True).start()


def run_programs(jobs: Sequence[Job]) -> list[Run]:
    """Runs each program under its setup, in the processes that the setup needs, two side by side."""
    if len(jobs) > 1:
        python_process.fork_server()  # started once, before several ask for it
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run_program, jobs))


def run_program(job: Job) -> Run:
    """Runs a program; one whose process hangs or dies is run once more, unless it is isolated.

    On a busy machine with fewer cores than devices about one run in a thousand waits for ever in TensorFlow's all-reduce. A
    worker whose all-reduce has timed out sometimes dies in TensorFlow before it answers; on 2.18, in two of four runs.
    """
    run = run_once(job)
    return run if run.ended or job.isolated else run_once(job)


def run_once(job: Job) -> Run:
    try:
        if job.reason:
            raise Unavailable(job.reason)
        job.setup.require()
    except Unavailable as reason:
        return Run(error=reason)
    environment = python_process.isolated(os.environ) if job.isolated else os.environ
    python_process.fork_server(environment)
    setup = job.setup
    tasks = strategies.TABLE[setup.strategy].tasks or cluster.ALONE
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "program").mkdir()
        question = {
            "text": for_setup(job.text, setup),
            "folder": str(folder / "program"),
            "tpu": setup.strategy == "tpu_traced",
            "observed": list(job.observed),
            "isolated": job.isolated,
        }
        try:
            answers = cluster.ask_all(
                CHILD, question, tasks, setup.keras, folder, has_failed, job.seconds, environment
            )
        except (ChildProcessError, TimeoutError) as error:
            return Run(error=error, ended=False)
    return merged(answers)


def has_failed(answer: dict[str, Any]) -> bool:
    return answer["error"] is not None


def merged(answers: list[dict[str, Any]]) -> Run:
    """Returns one run for those of all processes: the first that raised; else the first that printed something else."""
    observations: Observations = {}  # each process knows its own copies only
    for label, group in (item for each in answers for item in each["observations"].items()):
        for name, devices in group.items():
            known = observations.setdefault(label, {}).setdefault(name, [])
            known += [device for device in devices if device not in known]
    failures = [each for each in answers if each["error"]]
    if failures:
        error = failures[0]["error"]
        reason = exception_named(error["name"], error["message"])
        answer = failures[0]
        return run_of(answer, observations, reason, error["line"])
    odd = [each for each in answers if each["printed"] != answers[0]["printed"]]
    return run_of((odd or answers)[0], observations)


def run_of(
    answer: dict[str, Any], found: Observations, error: Exception | None = None, line: int = 0
) -> Run:
    return Run(answer["printed"], error, line, found, answer["network"], answer["files"])


def judged(run: Run, right: str) -> Run:
    """Returns a run with a SilentFailure as its error if it printed something else than what is right."""
    printed, wanted = run.printed.strip(), right.strip()
    if run.error is None and printed != wanted:
        return replace(run, error=SilentFailure(difference(printed, wanted)))
    return run


def cut(message: str) -> str:
    """Returns the beginning of a message that is longer than a reader wants to see."""
    return message if len(message) <= MOST_SHOWN else f"{message[:MOST_SHOWN].rstrip()} …"


def difference(printed: str, right: str) -> str:
    """Returns the first line that differs, and what it should be."""
    lines = list(zip(printed.splitlines() or [""], right.splitlines()))
    wrong, wanted = next(((a, b) for a, b in lines if a != b), lines[-1])
    return f"it prints {wrong!r}, and right is {wanted!r}"


def exception_named(name: str, message: str) -> Exception:
    """Returns an exception of this class; of a new one where this process has none of that name."""
    kinds = [getattr(module, name, None) for module in (builtins, checks, errors)]
    kind: type[Exception] = next(filter(None, kinds), type(name, (Exception,), {}))
    return kind(message)
