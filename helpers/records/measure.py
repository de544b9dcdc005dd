"""All verdicts of a mode, by running its notebook."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from ..base.refusals import Refused
from ..base.reports import report, reported
from ..modes.verdicts import OUTCOMES, verdicts
from ..notebooks.sources import with_cell
from ..processes import jobs, pool
from ..switches.setups import Setup
from .store import KEY, base_of, grid_of

MODE_LIMIT = 900  # seconds for all setups of one mode
FIELDS = ("mode", *KEY, "keras", "broken", "fixed", "evidence", "agrees", "says")

# Measuring: one process for a whole mode, and one for each setup where that does not come to its end


def measure(mode, path: Path, listed: list[Setup]) -> tuple[list[dict], dict]:
    """The verdicts of a mode under these setups, and those of its claims; refuses a notebook that fails."""
    keras = listed[0].keras
    ended = jobs.run_notebook(with_grid(path, listed), {"keras": keras}, MODE_LIMIT)
    told = reported(nbformat.reads(ended["notebook"], as_version=4))
    if ended["end"] == "failed":
        raise Refused(f"{mode.name} under Keras {keras}: {ended['failure']}")
    if ended["end"] == "finished":
        claims = [each["claim"] for each in told if "claim" in each]
        grid = next(each["grid"] for each in told if "grid" in each)
        lines = [{name: line[name] for name in FIELDS} for line in grid]
        return lines, {claim["id"]: claim["verdict"] for claim in claims}
    if len(listed) == 1:
        return [dead(mode, listed[0], ended)], {}
    parts = [measure(mode, path, [setup]) for setup in listed]
    claims = next((claims for _, claims in parts if claims), {})
    return [line for lines, _ in parts for line in lines], claims


def dead(mode, setup: Setup, ended: dict) -> dict:
    line = {"mode": mode.id, **setup.as_dict(), "broken": ended["end"], "fixed": "not reached"}
    return line | {"evidence": "executed", "agrees": False, "says": ended["failure"]}


def with_grid(path: Path, listed: list[Setup]) -> str:
    """The notebook with one more cell, which runs both experiments under every setup."""
    wanted = [setup.as_dict() for setup in listed]
    return with_cell(
        path,
        f"from helpers.records.measure import report_grid\n\nreport_grid(clinic.mode, broken, fixed, {wanted!r})",
    )


def report_grid(mode, broken, fixed, wanted: list[dict]):
    """What the added cell does: shows one line for each setup, as data."""
    found = verdicts({"broken": broken, "fixed": fixed}, [Setup(**each) for each in wanted])
    pairs = list(zip(found[::2], found[1::2]))
    report(f"{mode.name} under {len(pairs)} setups", grid=[line_of(mode, *pair) for pair in pairs])


def line_of(mode, broken, fixed) -> dict:
    line = {"mode": mode.id, **broken.setup.as_dict()}
    line |= {"broken": broken.outcome, "fixed": fixed.outcome, "evidence": broken.evidence}
    agrees = mode.agrees(broken) and mode.agrees(fixed)
    return line | {"agrees": agrees, "says": broken.says if broken.outcome != "works" else ""}


# Recording and comparing


def measure_all(chosen, keras: int, workers: int, tell):
    """Measures modes one after the other, or several at once, and gives each as soon as it is done.

    What it gives last is a function: verdict lines and claims, or what was raised instead.
    """
    wanted = []
    for mode, path in chosen:
        notebook = nbformat.read(path, as_version=4)
        listed = grid_of(mode, base_of(notebook, keras))
        wanted.append(((mode, notebook), (mode, path, listed)))
    with ThreadPoolExecutor(workers) as started:
        for number, (what, future) in enumerate(pool.as_ended(started, measure, wanted), 1):
            mode, notebook = what
            failed = future.exception()
            tell(f"[{number}/{len(wanted)}] {mode.id}: {failed or counts_of(future.result()[0])}")
            yield mode, notebook, future.result


def counts_of(lines: list[dict]) -> str:
    counts = {word: sum(line["broken"] == word for line in lines) for word in OUTCOMES}
    told = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"{len(lines)} setups ({told})"
