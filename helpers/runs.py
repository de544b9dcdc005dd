"""Notebooks over a grid of setups: papermill runs each one, and a folder collects what came of it."""

import json
import os
import time
from pathlib import Path

from . import catalog, render, runtime, sources
from .refusals import Refused
from .setups import Setup

LINES = "verdicts.jsonl"


def targets(names) -> list:
    """(mode, notebook) for every id, stem or path; what is no mode's notebook is refused."""
    return [target(name) for name in names]


def target(name: str):
    """A copy of a notebook may have any name that begins with its mode's id."""
    given = Path(name) if name.endswith(".ipynb") else None
    if given:
        sources.open_notebook(given)
    known = [path for path in sources.sources() if catalog.read_mode(path)]
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
            f"Results cannot be written to {str(folder)!r} ({error.strerror}); give another folder with -o."
        ) from None


def run_grid(names, setups: list[Setup], folder: Path, tell=sources.say) -> bool:
    """Runs every notebook under every setup; True if each run agrees with what its mode declares."""
    jobs = [(mode, path, setup) for mode, path in targets(names) for setup in setups]
    folder = writable(folder)
    agreed = []
    for number, (mode, path, setup) in enumerate(jobs, 1):
        began = time.monotonic()
        line = run_one(mode, path, setup, folder)
        agreed.append(line["agrees"])
        seconds = time.monotonic() - began
        tell(f"[{number}/{len(jobs)}] {mode.id} {setup}: {told(line)} ({seconds:.0f} s)")
    tell(f"{sum(agreed)} of {len(jobs)} runs agree with their mode; results in {folder}")
    return all(agreed)


def told(line: dict) -> str:
    if line["broken"] == "unavailable":
        return f"unavailable: {line['says']}"
    if line["agrees"]:
        return f"broken {line['broken']}, fixed {line['fixed']}, as declared"
    return f"DISAGREES: {line['says']}"


def run_one(mode, path: Path, setup: Setup, folder: Path) -> dict:
    """Executes one notebook, keeps it, and appends its verdict line."""
    stem = f"{mode.id}-{setup.strategy}-{setup.devices}-{setup.save_format}-keras{setup.keras}"
    failure = executed(path, folder / f"{stem}.ipynb", setup)
    line = verdict_line(mode, setup, sources.open_notebook(folder / f"{stem}.ipynb"), failure)
    line["notebook"] = f"{stem}.ipynb"
    with open(folder / LINES, "a") as lines:
        lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return line


def executed(path: Path, kept: Path, setup: Setup) -> str:
    """The sentence of the cell that failed, or nothing. The notebook gets its name once it is whole."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    part = kept.with_suffix(".part.ipynb")
    failure = ""
    try:
        papermill.execute_notebook(path, part, setup.as_dict(), **render.PAPERMILL)
    except PapermillExecutionError as error:
        failure = render.said(error)
    except DeadKernelError:
        failure = "the kernel died"
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(kept)
    return failure


def verdict_line(mode, setup: Setup, notebook, failure: str) -> dict:
    """One run in one line: the setup, both outcomes with their evidence, the claims, and whether all was as declared."""
    found = {
        report["step"]: report.get("verdict", {})
        for report in render.reports(notebook)
        if "step" in report
    }
    broken, fixed = found.get("reproduced", {}), found.get("fixed", {})
    claims = {
        r["claim"]["id"]: r["claim"]["verdict"] for r in render.reports(notebook) if "claim" in r
    }
    return {
        "mode": mode.id,
        **setup.as_dict(),
        "runtime": f"{runtime.kind()}-keras{setup.keras}",
        "broken": broken.get("outcome", "not reached"),
        "fixed": fixed.get("outcome", "not reached"),
        "evidence": broken.get("evidence", "none"),
        "says": failure or broken.get("says", ""),
        "claims": claims,
        "agrees": not failure,
    }
