"""Runs notebooks over a grid of setups; a folder collects each executed notebook, and a line of JSON for each run."""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat

from ..base import project
from ..base.display import reported, say
from ..base.errors import UserError
from ..base.files import writable, write_whole
from ..processes import notebook_job, pool
from ..programs.verdicts import OUTCOMES
from ..rendering.mode_notebooks import ModeNotebook, mode_notebooks
from ..setups import runtime
from ..setups.parameters import Setup

LINES = "verdicts.jsonl"
RUN_LIMIT = 300  # seconds for one run
CONNECTING = 10  # seconds for a scheduler to answer
ENDS = {"failed": "DISAGREES", "hangs": "HANGS", "crashes": "CRASHES", "finished": "NOT WHOLE"}


@dataclass(frozen=True)
class GridResult:
    """The outcome of one run, as it is written in one line; `of` is a hash of the notebook and the versions."""

    mode: str
    strategy: str
    devices: int
    save_format: str
    keras: int
    of: str
    runtime: str
    end: str
    broken: str
    fixed: str
    evidence: str
    says: str
    agrees: bool
    notebook: str

    @property
    def key(self) -> tuple[object, ...]:
        return self.mode, self.strategy, self.devices, self.save_format, self.keras, self.of

    def __str__(self) -> str:
        if self.broken == "unavailable":
            return f"unavailable: {self.says}"
        if self.agrees:
            return f"broken {self.broken}, fixed {self.fixed}, as declared"
        return f"{ENDS[self.end]}: {self.says}"


@dataclass(frozen=True)
class GridRun:
    """One notebook under one setup."""

    wanted: ModeNotebook
    setup: Setup

    @cached_property
    def of(self) -> str:
        text = self.wanted.path.read_text() + json.dumps(runtime.versions())
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def key(self) -> tuple[object, ...]:
        return self.wanted.mode.id, *self.setup.as_dict().values(), self.of

    @property
    def file_name(self) -> str:
        setup = self.setup
        where = f"{setup.strategy}-{setup.devices}-{setup.save_format}-keras{setup.keras}"
        return f"{self.wanted.mode.id}-{where}.ipynb"

    def __str__(self) -> str:
        return f"{self.wanted.mode.id} {self.setup}"


def run_grid(
    names: list[str],
    setups: list[Setup],
    folder: Path,
    workers: Executor | None = None,
    seconds: float = RUN_LIMIT,
    again: bool = False,
    tell: Callable[[str], None] = say,
) -> bool:
    """Runs every notebook under every setup; returns whether each run agrees with what its mode declares.

    What is finished in this folder is not run again, so the same call continues where an earlier one was stopped.
    """
    runs = [GridRun(wanted, setup) for wanted in mode_notebooks(names) for setup in setups]
    folder = writable(folder)
    finished = {} if again else read_results(folder)
    results = [finished[run.key] for run in runs if run.key in finished]
    if results:
        tell(f"{len(results)} of {len(runs)} runs were finished before; --again runs them anew")
    left = [run for run in runs if run.key not in finished]
    with workers or ThreadPoolExecutor(1) as started:
        results += run_all(left, folder, started, seconds, tell)
    agreed = sum(result.agrees for result in results)
    tell(f"{agreed} of {len(results)} runs agree with their mode; results in {folder}")
    return agreed == len(results)


def read_results(folder: Path) -> dict[tuple[object, ...], GridResult]:
    """Returns the results of earlier runs by key; a line that a crash has cut off is skipped."""
    path, results = folder / LINES, {}
    for text in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError, TypeError):
            result = GridResult(**json.loads(text))
            results[result.key] = result
    return results


def run_all(
    left: list[GridRun],
    folder: Path,
    workers: Executor,
    seconds: float,
    tell: Callable[[str], None],
) -> Iterator[GridResult]:
    """Yields the result of each run, written as soon as the run has ended."""
    tasks = [(run, (run.wanted.path.read_text(), run.setup.as_dict(), seconds)) for run in left]
    began = time.monotonic()
    ended = pool.as_ended(workers, notebook_job.run_notebook, tasks)
    for number, (run, future) in enumerate(ended, 1):
        result = write_result(run, future.result(), folder)
        pace = (time.monotonic() - began) / number
        remaining = f", about {pace * (len(left) - number):.0f} s left"
        tell(f"[{number}/{len(left)}] {run}: {result}{remaining}")
        yield result


def cluster(address: str) -> Executor:
    """Returns the workers of a dask.distributed cluster, each of which has this project installed."""
    try:
        import distributed
    except ImportError:
        raise UserError(
            f"--scheduler needs dask.distributed; run: {project.install_command('cluster')}"
        ) from None
    try:
        client: Any = distributed.Client  # its functions have no types
        executor: Executor = client(address, timeout=CONNECTING).get_executor(pure=False)
        return executor
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"No dask scheduler answers at {address!r} ({reason}); start one with: dask scheduler"
        ) from None


def write_result(run: GridRun, ended: dict[str, str], folder: Path) -> GridResult:
    """Writes the notebook before its line, so that no line is without its notebook."""
    write_whole(folder / run.file_name, ended["notebook"])
    result = result_of(run, ended)
    with open(folder / LINES, "a+b") as lines:
        lines.seek(max(0, lines.tell() - 1))
        cut = lines.read() not in (b"", b"\n")  # a crash has left half a line
        line = json.dumps(asdict(result), ensure_ascii=False)
        lines.write(b"\n" * cut + line.encode() + b"\n")
    return result


def result_of(run: GridRun, ended: dict[str, str]) -> GridResult:
    reports = reported(nbformat.reads(ended["notebook"], as_version=4))
    steps = {each["step"]: each.get("verdict", {}) for each in reports if "step" in each}
    broken, fixed = steps.get("broken", {}), steps.get("fixed", {})
    # The first step that was not reached is the one that hung or died.
    outcomes = iter([ended["end"]] if ended["end"] in OUTCOMES else [])
    return GridResult(
        mode=run.wanted.mode.id,
        **run.setup.as_dict(),
        of=run.of,
        runtime=f"{runtime.kind()}-keras{run.setup.keras}",
        end=ended["end"],
        broken=broken.get("outcome") or next(outcomes, "not reached"),
        fixed=fixed.get("outcome") or next(outcomes, "not reached"),
        evidence=broken.get("evidence", "none"),
        says=ended["failure"] or broken.get("says", ""),
        agrees=ended["end"] == "finished" and bool(broken and fixed),
        notebook=run.file_name,
    )
