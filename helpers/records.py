"""Records: every verdict of one runtime, kept so that the next run can be compared with it."""

import ast
import datetime
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat

from . import formats, jobs, junit, render, runtime, sources, strategies
from .modes import show
from .refusals import Refused
from .setups import Setup
from .verdicts import OUTCOMES, verdicts
from .workers import write_whole

KINDS = ("cpu", "gpu", "tpu")
RUNTIMES = [f"{kind}-keras{keras}" for kind in KINDS for keras in reversed(runtime.GENERATIONS)]
LIMIT = 900  # seconds for all setups of one mode
KEY = ("strategy", "devices", "save_format")
FIELDS = ("mode", *KEY, "keras", "broken", "fixed", "evidence", "agrees", "says")


def folder() -> Path:
    return sources.NOTEBOOKS / "records"


def path_of(name: str) -> Path:
    return folder() / f"{name}.json"


def name_of(keras: int) -> str:
    return f"{runtime.kind()}-keras{keras}"


def read(name: str) -> dict | None:
    return json.loads(path_of(name).read_text()) if path_of(name).exists() else None


def write(record: dict, place: Path | None = None):
    """One verdict in a line, so that a difference between two records is a readable one."""
    place = place or folder()
    place.mkdir(exist_ok=True)
    text = in_lines(record, ("modes", "verdicts"))
    write_whole(place / path_of(record["runtime"]).name, text)


def in_lines(values: dict, many: tuple) -> str:
    """JSON with one line for each name, and one for each thing in those that hold many."""
    told = {name: spread(each) if name in many else as_json(each) for name, each in values.items()}
    return "{\n" + ",\n".join(f'"{name}": {each}' for name, each in told.items()) + "\n}\n"


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False)


def spread(values) -> str:
    if isinstance(values, dict):
        inner = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(values.items())]
        return "{\n" + ",\n".join(inner) + "\n}"
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in values) + "\n]"


# The setups of a mode


def grid_of(mode, base: Setup) -> list[Setup]:
    """Every setup that this mode's switches can make; what does not matter to it stays as its notebook has it."""
    kept_as = formats.TABLE if "save_format" in mode.switches else [base.save_format]
    made = [
        {"strategy": name, "devices": count, "save_format": each}
        for name, count in places_of(mode, base)
        for each in kept_as
        if base.keras in formats.TABLE[each].generations
    ]
    return [base.but(**values) for values in made]


def places_of(mode, base: Setup) -> list[tuple]:
    """Strategies with all their device counts, where the strategy matters; else this notebook's own."""
    if "strategy" in mode.switches:
        return [(row.name, count) for row in strategies.ROWS for count in row.counts]
    counts = strategies.TABLE[base.strategy].counts
    return [
        (base.strategy, each)
        for each in counts
        if "devices" in mode.switches or each == base.devices
    ]


def base_of(notebook, keras: int) -> Setup:
    """The setup in a notebook's own parameters cell, under this Keras generation."""
    cell = next(each for each in notebook.cells if "parameters" in sources.tags(each))
    values = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell.source).body
    }
    return Setup(**values | {"keras": keras})


def code_of(notebook) -> str:
    """Changes with the code of a notebook, not with its prose or its pictures, nor with the cells that nobody types."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = [cell.source for cell in cells if "bootstrap" not in sources.tags(cell)]
    code = sources.without_forms("\n".join(kept))
    return hashlib.sha256(code.encode()).hexdigest()[:12]


# Measuring: one process for a whole mode, and one for each setup where that does not come to its end


def measure(mode, path: Path, listed: list[Setup]) -> tuple[list[dict], dict]:
    """The verdicts of a mode under these setups, and those of its claims; refuses a notebook that fails."""
    keras = listed[0].keras
    ended = jobs.run(with_grid(path, listed), {"keras": keras}, LIMIT)
    reports = render.reports(nbformat.reads(ended["notebook"], as_version=4))
    if ended["end"] == "failed":
        raise Refused(f"{mode.name} under Keras {keras}: {ended['failure']}")
    if ended["end"] == "finished":
        claims = [each["claim"] for each in reports if "claim" in each]
        grid = next(each["grid"] for each in reports if "grid" in each)
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
        path, f"from helpers import records\n\nrecords.report(MODE, broken, fixed, {wanted!r})"
    )


def with_cell(path: Path, code: str) -> str:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    return nbformat.writes(notebook)


def report(mode, broken, fixed, wanted: list[dict]):
    """What the added cell does: shows one line for each setup, as data."""
    found = verdicts({"broken": broken, "fixed": fixed}, [Setup(**each) for each in wanted])
    pairs = list(zip(found[::2], found[1::2]))
    show(f"{mode.name} under {len(pairs)} setups", grid=[line_of(mode, *pair) for pair in pairs])


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
    with ThreadPoolExecutor(workers) as pool:
        asked = {}
        for mode, path in chosen:
            notebook = nbformat.read(path, as_version=4)
            listed = grid_of(mode, base_of(notebook, keras))
            asked[pool.submit(measure, mode, path, listed)] = (mode, notebook)
        try:
            for number, future in enumerate(as_completed(asked), 1):
                mode, notebook = asked[future]
                failed = future.exception()
                tell(f"[{number}/{len(asked)}] {mode.id}: {failed or summary(future.result()[0])}")
                yield mode, notebook, future.result
        except BaseException:
            jobs.stop_all(pool, asked)
            raise


def summary(lines: list[dict]) -> str:
    counts = {word: sum(line["broken"] == word for line in lines) for word in OUTCOMES}
    told = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"{len(lines)} setups ({told})"


def empty(keras: int) -> dict:
    versions = runtime.versions()
    today = datetime.date.today().isoformat()
    start = {"runtime": name_of(keras), "date": today, "versions": versions}
    return start | {"modes": {}, "verdicts": []}


def record(chosen, keras: int, workers=1, again=False, tell=sources.say):
    """Measures what this runtime's record does not hold yet, and writes it after every mode, so it can be stopped."""
    stored, fresh = read(name_of(keras)), empty(keras)
    if not stored or stored["versions"] != fresh["versions"]:
        stored = fresh
    for mode, _ in chosen if again else []:
        stored["modes"].pop(mode.id, None)
    left = [(mode, path) for mode, path in chosen if not holds(stored, mode, path)]
    if len(left) < len(chosen):
        tell(
            f"{len(chosen) - len(left)} of {len(chosen)} modes are recorded already; --again runs them anew"
        )
    for mode, notebook, result in measure_all(left, keras, workers, tell):
        add(stored, mode, notebook, *result())
        write(stored | {"date": fresh["date"]})
    tell(f"{name_of(keras)}: {len(stored['verdicts'])} verdicts in {path_of(name_of(keras)).name}")


def add(stored: dict, mode, notebook, lines: list[dict], claims: dict):
    stored["modes"][mode.id] = {"code": code_of(notebook), "claims": claims}
    kept = [line for line in stored["verdicts"] if line["mode"] != mode.id]
    stored["verdicts"] = sorted(kept + lines, key=lambda line: line["mode"])


def holds(stored: dict, mode, path: Path) -> bool:
    known = stored["modes"].get(mode.id, {})
    return known.get("code") == code_of(nbformat.read(path, as_version=4))


@dataclass(frozen=True)
class Comparison:
    """One verdict of this run beside its record; `problem` says in words how they differ, if they do."""

    mode: str
    what: str
    problem: str = ""
    unavailable: str = ""

    def case(self):
        skipped = "" if self.problem else self.unavailable
        return junit.case(self.mode, self.what, failure=self.problem, skipped=skipped)


def compare(
    chosen, keras: int, workers=1, tell=sources.say, save: Path | None = None
) -> list[Comparison]:
    """What this runtime says now, verdict by verdict, beside its record; `save` keeps it as a record of its own."""
    name, fresh = name_of(keras), empty(keras)
    stored = read(name)
    tell_versions(name, stored, fresh, tell)
    found = []
    for mode, notebook, result in measure_all(chosen, keras, workers, tell):
        try:
            found += comparisons(stored, mode, *result())
            add(fresh, mode, notebook, *result())
        except Refused as reason:  # a notebook that fails is a difference, and the rest goes on
            found.append(Comparison(mode.id, f"Keras {keras}", str(reason)))
        if save:
            write(fresh, save)
    return found


def tell_versions(name: str, stored: dict | None, fresh: dict, tell):
    if stored is None:
        tell(
            f"{name} has not been recorded yet, so its verdicts are compared with what the notebooks declare."
        )
    elif stored["versions"] != fresh["versions"]:
        tell(
            f"{name} was recorded with {told(stored['versions'])}; this is {told(fresh['versions'])}"
        )


def told(versions: dict) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def comparisons(stored: dict | None, mode, lines: list[dict], claims: dict) -> list[Comparison]:
    if stored is None:
        return [as_declared(mode, line) for line in lines]
    if mode.id not in stored["modes"]:
        keras = lines[0]["keras"]
        missing = f"{mode.id} is not in the record; run: clinic record {mode.id} --keras {keras}"
        return [Comparison(mode.id, f"Keras {keras}", missing)]
    known = {key(line): line for line in stored["verdicts"] if line["mode"] == mode.id}
    found = [beside(mode, known.get(key(line)), line) for line in lines]
    gone = known.keys() - {key(line) for line in lines}
    found += [
        Comparison(mode.id, where(line), f"{mode.id} {where(line)}: recorded, and not run now")
        for each, line in known.items()
        if each in gone
    ]
    before = stored["modes"][mode.id]["claims"]
    keras = lines[0]["keras"]
    return found + [claimed(mode, each, keras, before, claims) for each in sorted(before | claims)]


def claimed(mode, name: str, keras: int, before: dict, now: dict) -> Comparison:
    was, found = before.get(name), now.get(name)
    words = f"{mode.id}, claim {name}: the record says {was}, this run says {found}"
    return Comparison(mode.id, f"claim {name}, Keras {keras}", words if was != found else "")


def key(line: dict) -> tuple:
    return tuple(line[name] for name in KEY)


def where(line: dict) -> str:
    return str(Setup(**{name: line[name] for name in (*KEY, "keras")}))


def as_declared(mode, now: dict) -> Comparison:
    """Of claims the notebook has judged already: it fails where a verdict is not the declared one."""
    said = f"broken {now['broken']}, fixed {now['fixed']} ({now['says'] or 'no message'})"
    problem = f"{mode.id} {where(now)}: not as declared: {said}"
    return Comparison(mode.id, where(now), "" if now["agrees"] else problem)


def beside(mode, before: dict | None, now: dict) -> Comparison:
    unavailable = now["says"] if now["broken"] == "unavailable" else ""
    return Comparison(mode.id, where(now), other(mode, before, now), unavailable)


def other(mode, before: dict | None, now: dict) -> str:
    """One sentence if a verdict is not the recorded one, and nothing if it is."""
    if before is None:
        return f"{mode.id} {where(now)}: not in the record"
    changed = [
        f"{name} {before[name]}, this run says {now[name]}"
        for name in ("broken", "fixed", "evidence")
        if before[name] != now[name]
    ]
    if not changed:
        return ""
    return f"{mode.id} {where(now)}: the record says {'; '.join(changed)} ({now['says'] or 'no message'})"
