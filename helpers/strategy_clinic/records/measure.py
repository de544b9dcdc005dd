"""All verdicts of a mode, by running its notebook."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from ..base.display import report, reported
from ..base.errors import UserError
from ..experiments.verdicts import OUTCOMES
from ..processes import notebook_job, pool
from ..rendering.render import stable_outputs as settled
from ..rendering.sources import tags
from ..setups.parameters import Setup
from .store import KEY, base_of, grid_of

MODE_LIMIT = 900  # seconds for all setups of one mode
PAGES = 3  # the Keras generation that the stored pages are run on
FOR_A_READER = re.compile(r"^session\.(table|exercise|solution|panel)\(.*\)$", re.MULTILINE)
FIELDS = ("mode", *KEY, "keras", "broken", "fixed", "evidence", "agrees", "says")

# Measuring: one process for a whole mode, and one for each setup where that does not come to its end


def measure(mode, path: Path, listed: list[Setup]) -> tuple[list[dict], dict]:
    """The verdicts of a mode under these setups, and those of its claims; refuses a notebook that fails."""
    keras = listed[0].keras
    ended = notebook_job.run_notebook(with_grid(path, listed), {"keras": keras}, MODE_LIMIT)
    told = reported(nbformat.reads(ended["notebook"], as_version=4))
    if ended["end"] == "failed":
        raise UserError(f"{mode.name} under Keras {keras}: {ended['failure']}")
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


def measure_own(mode, path: Path, keras: int) -> tuple[dict, dict, str]:
    """The verdicts in a notebook's own setup, those of its claims, and whether its page says what is stored.

    A cell that fails, as it may on another version, does not keep the others from being run.
    """
    setup = base_of(nbformat.read(path, as_version=4), keras)
    text = going_on(with_grid(path, [setup], recalled=True), whole=keras == PAGES)
    ended = notebook_job.run_notebook(text, {"keras": keras}, MODE_LIMIT)
    executed = nbformat.reads(ended["notebook"], as_version=4)
    told = reported(executed)
    grid = next((each["grid"] for each in told if "grid" in each), None)
    line = grid[0] if grid else unreached(mode, setup, ended)
    claims = {each["claim"]["id"]: each["claim"]["verdict"] for each in told if "claim" in each}
    pages = page_text(executed), page_text(nbformat.read(path, as_version=4))
    alike = keras != PAGES or pages[1].items() <= pages[0].items()
    return line, claims, "as stored" if alike else "differs"


def with_cell(path: Path, code: str) -> str:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    return nbformat.writes(notebook)


def going_on(text: str, whole: bool) -> str:
    """A notebook whose cells may fail: what failed is in its outputs, and the next cell is run.

    Not whole, it is without what only a reader needs, which takes most of the time.
    """
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source if whole else FOR_A_READER.sub("pass", cell.source)
        cell.metadata["tags"] = [*cell.metadata.get("tags", []), "raises-exception"]
    return nbformat.writes(notebook)


def unreached(mode, setup: Setup, ended: dict) -> dict:
    line = dead(mode, setup, ended)
    return line if ended["end"] in OUTCOMES else line | {"broken": "not reached"}


def page_text(notebook) -> dict:
    """What nbval would compare, by cell: the text of all outputs but those of cells that are excused."""
    return {
        cell.id: "".join(map(output_text, settled(cell.outputs)))
        for cell in notebook.cells
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell) and cell.outputs
    }


def output_text(output) -> str:
    return output.get("text", "") + output.get("data", {}).get("text/plain", "")


def with_grid(path: Path, listed: list[Setup], recalled: bool = False) -> str:
    """The notebook with one more cell, which runs both experiments under every setup, or recalls them."""
    wanted = [setup.as_dict() for setup in listed]
    asked = f"report_grid(session, broken, fixed, {wanted!r}, {not recalled})"
    return with_cell(path, f"from strategy_clinic.records.measure import report_grid\n\n{asked}")


def report_grid(session, broken, fixed, wanted: list[dict], again: bool):
    """What the added cell does: shows one line for each setup, as data."""
    setups, mode = [Setup(**each) for each in wanted], session.mode
    found = session.run({"broken": broken, "fixed": fixed}, setups, again)
    pairs = list(zip(found[::2], found[1::2]))
    report(f"{mode.name} under {len(pairs)} setups", grid=[line_of(mode, *pair) for pair in pairs])


def line_of(mode, broken, fixed) -> dict:
    line = {"mode": mode.id, **broken.setup.as_dict()}
    line |= {"broken": broken.outcome, "fixed": fixed.outcome, "evidence": broken.evidence}
    agrees = mode.agrees(broken) and mode.agrees(fixed)
    return line | {"agrees": agrees, "says": broken.says if broken.outcome != "works" else ""}


# Recording and comparing


def whole_grid(mode, path: Path, keras: int) -> tuple[list[dict], dict]:
    notebook = nbformat.read(path, as_version=4)
    return measure(mode, path, grid_of(mode, base_of(notebook, keras)))


def own_setup(mode, path: Path, keras: int) -> tuple[list[dict], dict]:
    line, claims, _ = measure_own(mode, path, keras)
    return [line], claims


def measure_all(chosen, keras: int, workers: int, tell, how=whole_grid):
    """Measures modes one after the other, or several at once, and gives each as soon as it is done.

    What it gives last is a function: verdict lines and claims, or what was raised instead.
    """
    wanted = [
        ((mode, nbformat.read(path, as_version=4)), (mode, path, keras)) for mode, path in chosen
    ]
    with ThreadPoolExecutor(workers) as started:
        for number, (what, future) in enumerate(pool.as_ended(started, how, wanted), 1):
            mode, notebook = what
            failed = future.exception()
            tell(f"[{number}/{len(wanted)}] {mode.id}: {failed or counts_of(future.result()[0])}")
            yield mode, notebook, future.result


def counts_of(lines: list[dict]) -> str:
    counts = {word: sum(line["broken"] == word for line in lines) for word in OUTCOMES}
    told = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"{len(lines)} setups ({told})"
