"""Notebooks over a grid of setups: papermill runs each one, and a folder collects what came of it."""

import contextlib
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

from . import catalog, jobs, render, runtime, sources
from .refusals import Refused
from .setups import PARAMETERS, Setup
from .verdicts import OUTCOMES
from .workers import write_whole

LINES = "verdicts.jsonl"
LIMIT = 300  # seconds for one run
PATIENCE = 10  # seconds for what should answer at once
WORDS = {"failed": "DISAGREES", "hangs": "HANGS", "crashes": "CRASHES", "finished": "NOT WHOLE"}


def targets(names) -> list:
    """(mode, notebook) for every id, stem or path; what is no mode's notebook is refused."""
    known = [path for path in sources.sources() if catalog.read_mode(path)]
    ids = [path.stem.split("_")[0] for path in known]
    return [target(name, known) for name in (ids if list(names) == ["all"] else names)]


def target(name: str, known: list[Path]):
    """A copy of a notebook may have any name that begins with its mode's id."""
    given = Path(name) if name.endswith(".ipynb") else None
    if given:
        sources.open_notebook(given)
    source = sources.find(given.stem.split("_")[0] if given else name, known)
    path = given or source.with_suffix(".ipynb")
    if not path.exists():
        identity = source.stem.split("_")[0]
        raise Refused(f"{path.name} has not been rendered yet; run: clinic render {identity}")
    return catalog.read_mode(source), path


def writable(folder: Path) -> Path:
    """The folder, made if need be; refused before anything runs if results could not be kept in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
        return folder
    except OSError as error:
        raise Refused(
            f"Results cannot be written to {str(folder)!r} ({error.strerror}); give another folder."
        ) from None


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


def key_of(line: dict) -> tuple:
    return tuple(line.get(name) for name in ("mode", *PARAMETERS, "of"))


def finished(folder: Path) -> dict:
    """The verdict lines of earlier runs, by what they are about; a line that was cut off by a crash is no line."""
    path, lines = folder / LINES, {}
    for text in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            lines[key_of(line)] = line
    return lines


def run_grid(names, setups, folder: Path, pool=None, seconds=LIMIT, again=False, tell=sources.say):
    """Runs every notebook under every setup; True if each run agrees with what its mode declares.

    What an earlier call has finished in this folder is not run again, so the same call goes on where it was stopped.
    """
    wanted = [Run(mode, path, setup) for mode, path in targets(names) for setup in setups]
    folder = writable(folder)
    known = {} if again else finished(folder)
    lines = [known[run.key] for run in wanted if run.key in known]
    left = [run for run in wanted if run.key not in known]
    if lines:
        tell(f"{len(lines)} of {len(wanted)} runs were finished before; --again runs them anew")
    with pool or ThreadPoolExecutor(1) as workers:
        lines += run_all(left, folder, workers, seconds, tell)
    agreed = sum(line["agrees"] for line in lines)
    tell(f"{agreed} of {len(lines)} runs agree with their mode; results in {folder}")
    return agreed == len(lines)


def run_all(left: list[Run], folder: Path, workers, seconds: float, tell) -> list[dict]:
    """Hands the runs to the workers and keeps each as soon as it has ended."""
    asked = {
        workers.submit(jobs.run, run.path.read_text(), run.setup.as_dict(), seconds): run
        for run in left
    }
    began, lines = time.monotonic(), []
    try:
        for future in as_completed(asked):
            run = asked[future]
            lines.append(keep(run, future.result(), folder))
            pace = (time.monotonic() - began) / len(lines)
            remaining = f", about {pace * (len(left) - len(lines)):.0f} s left"
            tell(f"[{len(lines)}/{len(left)}] {run}: {told(lines[-1])}{remaining}")
    except BaseException:
        jobs.stop_all(workers, asked)
        raise
    return lines


def cluster(address: str):
    """Workers on other machines: a dask.distributed cluster, each of whose workers has this project installed."""
    try:
        from distributed import Client
    except ImportError:
        raise Refused(
            "--scheduler needs dask.distributed; run: pip install 'strategy-clinic[cluster]'"
        ) from None
    try:
        return Client(address, timeout=PATIENCE).get_executor(pure=False)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise Refused(
            f"No dask scheduler answers at {address!r} ({said}); start one with: dask scheduler"
        ) from None


def told(line: dict) -> str:
    if line["broken"] == "unavailable":
        return f"unavailable: {line['says']}"
    if line["agrees"]:
        return f"broken {line['broken']}, fixed {line['fixed']}, as declared"
    return f"{WORDS[line['end']]}: {line['says']}"


def keep(run: Run, ended: dict, folder: Path) -> dict:
    """Keeps the executed notebook, then its verdict line: whoever finds a line finds its notebook."""
    write_whole(folder / f"{run.stem}.ipynb", ended["notebook"])
    line = verdict_line(run, ended)
    with open(folder / LINES, "a+b") as lines:
        lines.seek(max(0, lines.tell() - 1))
        cut = lines.read() not in (b"", b"\n")  # by a crash in the middle of a line
        lines.write(b"\n" * cut + json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return line


def verdict_line(run: Run, ended: dict) -> dict:
    """One run in one line: the setup, both outcomes with their evidence, the claims, and whether all was as declared."""
    reports = render.reports(nbformat.reads(ended["notebook"], as_version=4))
    found = {each["step"]: each.get("verdict", {}) for each in reports if "step" in each}
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
            each["claim"]["id"]: each["claim"]["verdict"] for each in reports if "claim" in each
        },
        "agrees": ended["end"] == "finished" and bool(broken and fixed),
        "notebook": f"{run.stem}.ipynb",
    }
