"""Notebooks over a grid of setups: papermill runs each one, and a folder collects what came of it."""

import contextlib
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

from ..base.display import reported, say
from ..base.errors import UserError
from ..base.files import writable, write_whole
from ..experiments.verdicts import OUTCOMES
from ..processes import notebook_job, pool
from ..rendering.mode_notebooks import mode_notebooks
from ..setups import runtime
from ..setups.parameters import PARAMETERS, Setup

LINES = "verdicts.jsonl"
RUN_LIMIT = 300  # seconds for one run
ANSWERING = 10  # seconds for what should answer at once
ENDS = {"failed": "DISAGREES", "hangs": "HANGS", "crashes": "CRASHES", "finished": "NOT WHOLE"}


@dataclass(frozen=True)
class Run:
    """One notebook under one setup; `of` changes with the notebook and with the versions that run it."""

    mode: object
    path: Path
    setup: Setup

    @property
    def stem(self) -> str:
        setup = self.setup
        return f"{self.mode.id}-{setup.strategy}-{setup.devices}-{setup.save_format}-keras{setup.keras}"

    @cached_property
    def of(self) -> str:
        made = self.path.read_text() + json.dumps(runtime.versions())
        return hashlib.sha256(made.encode()).hexdigest()[:12]

    @property
    def key(self) -> tuple:
        return (self.mode.id, *self.setup.as_dict().values(), self.of)

    def __str__(self):
        return f"{self.mode.id} {self.setup}"


def line_key(line: dict) -> tuple:
    return tuple(line.get(name) for name in ("mode", *PARAMETERS, "of"))


def finished(folder: Path) -> dict:
    """The verdict lines of earlier runs, by what they are about; a line that was cut off by a crash is no line."""
    path, lines = folder / LINES, {}
    for text in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            lines[line_key(line)] = line
    return lines


def run_grid(names, setups, folder: Path, workers=None, seconds=RUN_LIMIT, again=False, tell=say):
    """Runs every notebook under every setup; True if each run agrees with what its mode declares.

    What an earlier call has finished in this folder is not run again, so the same call goes on where it was stopped.
    """
    wanted = [
        Run(each.mode, each.path, setup) for each in mode_notebooks(names) for setup in setups
    ]
    folder = writable(folder)
    known = {} if again else finished(folder)
    lines = [known[run.key] for run in wanted if run.key in known]
    left = [run for run in wanted if run.key not in known]
    if lines:
        tell(f"{len(lines)} of {len(wanted)} runs were finished before; --again runs them anew")
    with workers or ThreadPoolExecutor(1) as started:
        lines += run_each(left, folder, started, seconds, tell)
    agreed = sum(line["agrees"] for line in lines)
    tell(f"{agreed} of {len(lines)} runs agree with their mode; results in {folder}")
    return agreed == len(lines)


def run_each(left: list[Run], folder: Path, workers, seconds: float, tell) -> list[dict]:
    """Hands the runs to the workers and keeps each as soon as it has ended."""
    wanted = [(run, (run.path.read_text(), run.setup.as_dict(), seconds)) for run in left]
    began, lines = time.monotonic(), []
    for run, future in pool.as_ended(workers, notebook_job.run_notebook, wanted):
        lines.append(keep_run(run, future.result(), folder))
        pace = (time.monotonic() - began) / len(lines)
        remaining = f", about {pace * (len(left) - len(lines)):.0f} s left"
        tell(f"[{len(lines)}/{len(left)}] {run}: {in_brief(lines[-1])}{remaining}")
    return lines


def cluster(address: str):
    """Workers on other machines: a dask.distributed cluster, each of whose workers has this project installed."""
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            "--scheduler needs dask.distributed; run: pip install 'strategy-clinic[cluster]'"
        ) from None
    try:
        return Client(address, timeout=ANSWERING).get_executor(pure=False)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise UserError(
            f"No dask scheduler answers at {address!r} ({said}); start one with: dask scheduler"
        ) from None


def in_brief(line: dict) -> str:
    if line["broken"] == "unavailable":
        return f"unavailable: {line['says']}"
    if line["agrees"]:
        return f"broken {line['broken']}, fixed {line['fixed']}, as declared"
    return f"{ENDS[line['end']]}: {line['says']}"


def keep_run(run: Run, ended: dict, folder: Path) -> dict:
    """Keeps the executed notebook first and its line after it, so that no line is without its notebook."""
    write_whole(folder / f"{run.stem}.ipynb", ended["notebook"])
    line = verdict_line(run, ended)
    with open(folder / LINES, "a+b") as lines:
        lines.seek(max(0, lines.tell() - 1))
        cut = lines.read() not in (b"", b"\n")  # by a crash in the middle of a line
        lines.write(b"\n" * cut + json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return line


def verdict_line(run: Run, ended: dict) -> dict:
    """One run in one line: the setup, both outcomes with their evidence, the claims, and whether all was as declared."""
    told = reported(nbformat.reads(ended["notebook"], as_version=4))
    found = {each["step"]: each.get("verdict", {}) for each in told if "step" in each}
    broken, fixed = found.get("reproduced", {}), found.get("fixed", {})
    # The first step that was not reached is the one that hung or died.
    missing = iter([ended["end"]] if ended["end"] in OUTCOMES else [])
    return {
        "mode": run.mode.id,
        **run.setup.as_dict(),
        "of": run.of,
        "runtime": f"{runtime.kind()}-keras{run.setup.keras}",
        "end": ended["end"],
        "broken": broken.get("outcome") or next(missing, "not reached"),
        "fixed": fixed.get("outcome") or next(missing, "not reached"),
        "evidence": broken.get("evidence", "none"),
        "says": ended["failure"] or broken.get("says", ""),
        "claims": {
            each["claim"]["id"]: each["claim"]["verdict"] for each in told if "claim" in each
        },
        "agrees": ended["end"] == "finished" and bool(broken and fixed),
        "notebook": f"{run.stem}.ipynb",
    }
