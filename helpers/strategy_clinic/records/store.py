"""Records: the verdicts of a runtime, stored as JSON that a person can read and compare."""

import ast
import datetime
import functools
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from ..base import files
from ..base.files import write_whole
from ..base.json_lines import line_by_line
from ..modes.failure_mode import FailureMode
from ..rendering import sources
from ..rendering.mode_notebooks import ModeNotebook
from ..setups import formats, runtime, strategies
from ..setups.parameters import Setup

MACHINES = ("cpu", "gpu", "tpu")
RUNTIMES = [
    f"{kind}-keras{keras}" for kind in MACHINES for keras in reversed(runtime.KERAS_VERSIONS)
]


@dataclass(frozen=True)
class RecordedVerdict:
    """The outcomes of a mode's two experiments under one setup; `evidence` and `says` are the broken one's."""

    mode: str
    strategy: str
    devices: int
    save_format: str
    keras: int
    broken: str
    fixed: str
    evidence: str
    agrees: bool
    says: str

    @property
    def setup(self) -> Setup:
        return Setup(self.strategy, self.devices, self.save_format, self.keras)


@dataclass(frozen=True)
class Measured:
    """The verdicts of a mode, and whether its page shows what is stored."""

    verdicts: list[RecordedVerdict]
    page: str = "as stored"


@dataclass(frozen=True)
class RecordedMode:
    """Of which code a mode's verdicts are."""

    code: str


@dataclass
class Record:
    """Every verdict of one runtime, which is a kind of machine with a version of Keras."""

    runtime: str
    date: str
    versions: dict[str, str]
    modes: dict[str, RecordedMode] = field(default_factory=dict)
    verdicts: list[RecordedVerdict] = field(default_factory=list)

    def of_mode(self, mode: str) -> dict[Setup, RecordedVerdict]:
        return {verdict.setup: verdict for verdict in self.verdicts if verdict.mode == mode}

    def add(self, measured: Measured, of: ModeNotebook) -> None:
        mode = of.mode.id
        recorded = {mode: RecordedMode(code_of(of.notebook))}
        self.modes = dict(sorted((self.modes | recorded).items()))
        others = [verdict for verdict in self.verdicts if verdict.mode != mode]
        self.verdicts = sorted(others + measured.verdicts, key=lambda verdict: verdict.mode)

    def holds(self, wanted: ModeNotebook) -> bool:
        """Returns whether the mode is recorded under all of its setups, and its notebook's code is the same since then."""
        recorded = self.modes.get(wanted.mode.id)
        if recorded is None or recorded.code != code_of(wanted.notebook):
            return False
        own = own_setup(wanted.notebook, int(self.runtime[-1]))
        return set(grid_of(wanted.mode, own)) <= self.of_mode(wanted.mode.id).keys()


def new_record(keras: int) -> Record:
    return Record(runtime_name(keras), datetime.date.today().isoformat(), runtime.versions())


def runtime_name(keras: int) -> str:
    return f"{runtime.kind()}-keras{keras}"


# As files


def records_folder() -> Path:
    return files.notebooks() / "records"


def record_file(name: str) -> Path:
    return records_folder() / f"{name}.json"


def read_record(name: str) -> Record | None:
    path = record_file(name)
    return parse_record(path.read_text()) if path.exists() else None


def stored_record(name: str) -> Record | None:
    """Reads a record that is not to be changed: the same text is parsed once."""
    path = record_file(name)
    return parsed_record(path.read_text()) if path.exists() else None


@functools.cache
def parsed_record(text: str) -> Record:
    return parse_record(text)


def parse_record(text: str) -> Record:
    stored = json.loads(text)
    # Records from before the documents had notebooks of their own have claims, too.
    modes = {mode: RecordedMode(recorded["code"]) for mode, recorded in stored["modes"].items()}
    verdicts = [RecordedVerdict(**verdict) for verdict in stored["verdicts"]]
    return Record(**stored | {"modes": modes, "verdicts": verdicts})


def write_record(record: Record, folder: Path | None = None) -> None:
    folder = folder or records_folder()
    folder.mkdir(exist_ok=True)
    write_whole(folder / record_file(record.runtime).name, line_by_line(asdict(record)))


# The setups and the code of a notebook


def grid_of(mode: FailureMode, base: Setup) -> list[Setup]:
    """Returns every setup that a mode's switches allow; what does not matter to it is as in its notebook."""
    names = list(formats.TABLE) if "save_format" in mode.switches else [base.save_format]
    return [
        base.but(strategy=strategy, devices=devices, save_format=name)
        for strategy, devices in places_of(mode, base)
        for name in names
    ]


def places_of(mode: FailureMode, base: Setup) -> list[tuple[str, int]]:
    """Returns strategies with device counts: all where the strategy matters, else the notebook's own."""
    if "strategy" in mode.switches:
        return [(row.name, count) for row in strategies.ROWS for count in row.counts]
    if "devices" in mode.switches:
        return [(base.strategy, count) for count in strategies.TABLE[base.strategy].counts]
    return [(base.strategy, base.devices)]


def own_setup(notebook: NotebookNode, keras: int) -> Setup:
    """Returns the setup in a notebook's parameters cell, but with this version of Keras."""
    return Setup(**parameters_of(notebook) | {"keras": keras})


def parameters_of(notebook: NotebookNode) -> dict[str, Any]:
    cell = next(cell for cell in notebook.cells if "parameters" in sources.tags(cell))
    values: dict[str, Any] = {}
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        values[statement.targets[0].id] = ast.literal_eval(statement.value)
    return values


def code_of(notebook: NotebookNode) -> str:
    """Returns a hash of what an author has typed as code; prose, pictures and the set-up cell do not change it."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    typed = [cell.source for cell in cells if "bootstrap" not in sources.tags(cell)]
    code = sources.typed("\n".join(typed))
    return hashlib.sha256(code.encode()).hexdigest()[:12]
