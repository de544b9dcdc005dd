"""Records: every verdict of one runtime, kept so that the next run can be compared with it."""

import ast
import datetime
import hashlib
import json
from pathlib import Path

from ..base import files
from ..base.files import write_whole
from ..rendering import sources
from ..setups import formats, runtime, strategies
from ..setups.parameters import Setup

MACHINES = ("cpu", "gpu", "tpu")
RUNTIMES = [f"{kind}-keras{keras}" for kind in MACHINES for keras in reversed(runtime.GENERATIONS)]
KEY = ("strategy", "devices", "save_format")


def records_folder() -> Path:
    return files.notebooks() / "records"


def record_file(name: str) -> Path:
    return records_folder() / f"{name}.json"


def name_of(keras: int) -> str:
    return f"{runtime.kind()}-keras{keras}"


def read_record(name: str) -> dict | None:
    return json.loads(record_file(name).read_text()) if record_file(name).exists() else None


def write_record(record: dict, place: Path | None = None):
    """One verdict in a line, so that a difference between two records is a readable one."""
    place = place or records_folder()
    place.mkdir(exist_ok=True)
    text = line_by_line(record, ("modes", "verdicts"))
    write_whole(place / record_file(record["runtime"]).name, text)


def line_by_line(values: dict, many: tuple) -> str:
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
        for name, count in places_for(mode, base)
        for each in kept_as
    ]
    return [base.but(**values) for values in made]


def places_for(mode, base: Setup) -> list[tuple]:
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
    return Setup(**parameters_of(notebook) | {"keras": keras})


def parameters_of(notebook) -> dict:
    cell = next(each for each in notebook.cells if "parameters" in sources.tags(each))
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell.source).body
    }


def code_of(notebook) -> str:
    """Changes with the code of a notebook, not with its prose or its pictures, nor with the cells that nobody types."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = [cell.source for cell in cells if "bootstrap" not in sources.tags(cell)]
    code = sources.without_forms("\n".join(kept))
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def empty(keras: int) -> dict:
    versions = runtime.versions()
    today = datetime.date.today().isoformat()
    start = {"runtime": name_of(keras), "date": today, "versions": versions}
    return start | {"modes": {}, "verdicts": []}


def add(stored: dict, mode, notebook, lines: list[dict], claims: dict):
    stored["modes"][mode.id] = {"code": code_of(notebook), "claims": claims}
    kept = [line for line in stored["verdicts"] if line["mode"] != mode.id]
    stored["verdicts"] = sorted(kept + lines, key=lambda line: line["mode"])


def holds(stored: dict, mode, path: Path) -> bool:
    known = stored["modes"].get(mode.id, {})
    return known.get("code") == code_of(sources.stored_notebook(path))


def setup_key(line: dict) -> tuple:
    return tuple(line[name] for name in KEY)


def in_setup(line: dict) -> str:
    return str(Setup(**{name: line[name] for name in (*KEY, "keras")}))
