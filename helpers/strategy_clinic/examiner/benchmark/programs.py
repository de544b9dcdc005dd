"""Programs of the benchmark: each experiment of a mode's page by itself, without the checks of the notebook."""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base import files
from ...base.errors import UserError, choose
from ...base.free_names import needed
from ...modes.registry import mode_by_id
from ...processes import python_process
from ...setups import strategies
from ...setups.parameters import Setup
from ..findings import Examination
from ..runs import plan
from ..runs.program_spec import ProgramSpec

SUBJECTS = "broken", "fixed", "solved"
LIMIT = 120  # seconds for a run
ONE_PROCESS = "valid: default, one_device, mirrored, central_storage, tpu_traced"
# Modules beside a program: what it imports for `strategy_clinic`, and its setup.
STAND_IN, SETUP = "clinic_stand_in", "clinic_setup"


@dataclass(frozen=True)
class BenchmarkProgram:
    """One experiment of one mode, and the line that the examiner is to blame if it is broken."""

    mode: str
    subject: str
    setup: Setup
    text: str
    guilty: int  # the line, or 0

    @property
    def expected(self) -> str:
        """Returns how it ends: `raises`, `silent` or `works`."""
        outcome: str = mode_by_id(self.mode).expects(self.setup)
        return outcome if self.subject == "broken" else "works"

    @property
    def is_broken(self) -> bool:
        return self.expected != "works"


def benchmark_programs(
    modes: Sequence[str], keras: int, strategy: str = ""
) -> list[BenchmarkProgram]:
    """Returns the programs of some modes, or of all, under their own setup or under another strategy."""
    chosen = [path for mode, path in files.mode_pages().items() if not modes or mode in modes]
    return [program for path in chosen for program in programs_of(path, keras, strategy)]


def programs_of(page: Path, keras: int, strategy: str = "") -> list[BenchmarkProgram]:
    text = page.read_text()
    tree = ast.parse(text)
    body = [statement for statement in tree.body if not isinstance(statement, ast.Expr)]
    mode = files.page_id(page)
    setup, guilty = setup_in(tree, keras, strategy), guilty_line(text, body)
    return [
        BenchmarkProgram(mode, subject, setup, program_text(text, body, subject), guilty)
        for subject in SUBJECTS
    ]


def setup_in(tree: ast.Module, keras: int, strategy: str) -> Setup:
    """Returns what the notebook's parameters say, with this generation of Keras, and perhaps another strategy."""
    assigned: dict[str, Any] = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if isinstance(node.targets[0], ast.Name)
    }
    chosen = {name: assigned[name] for name in ("strategy", "devices", "save_format")}
    if strategy:
        counts = row_of(strategy).counts
        fitting = [count for count in counts if count in (2, chosen["devices"]) and count > 1]
        chosen |= {"strategy": strategy, "devices": max(fitting, default=counts[-1])}
    return Setup(**chosen, keras=keras)


def row_of(strategy: str) -> strategies.Row:
    row: strategies.Row = strategies.TABLE[choose("strategy", strategy, strategies.TABLE)]
    if row.tasks or row.missing():
        raise UserError(f"strategy = {strategy!r} is none for one process here; {ONE_PROCESS}.")
    return row


def guilty_line(text: str, body: list[ast.stmt]) -> int:
    """Returns the line marked `# guilty` in what `broken` is made of; other cells may have guilty lines of their own."""
    lines = text.splitlines()
    for statement in needed(body, {"broken"}):
        for number in range(statement.lineno, (statement.end_lineno or 0) + 1):
            if "# guilty" in lines[number - 1]:
                return number
    return 0


def program_text(text: str, body: list[ast.stmt], subject: str) -> str:
    """Returns what an experiment needs, on its own lines, so that the guilty one is where it was; other lines are empty."""
    lines, kept = text.splitlines(), {}
    for statement in needed(body, {subject}):
        decorators = getattr(statement, "decorator_list", [])
        first = min(node.lineno for node in (statement, *decorators))
        for number in range(first, (statement.end_lineno or first) + 1):
            line = lines[number - 1]
            kept[number] = line.replace("from strategy_clinic import", f"from {STAND_IN} import")
    whole = [kept.get(number, "") for number in range(1, len(lines) + 1)]
    whole[0] = f"import {SETUP}"
    return "\n".join([*whole, f"{subject}({SETUP}.SETUP)", ""])


def lay_out(program: BenchmarkProgram, place: Path) -> ProgramSpec:
    """Writes a folder with the program, and beside it the modules that it imports for `strategy_clinic`."""
    folder, libraries = place / "program", place / "libraries"
    folder.mkdir()
    libraries.mkdir()
    setup = f"from strategy_clinic.setups.parameters import Setup\n\nSETUP = Setup(**{program.setup.as_dict()!r})\n"
    shutil.copy(Path(__file__).with_name("stand_in.py"), libraries / f"{STAND_IN}.py")
    (libraries / f"{SETUP}.py").write_text(setup)
    name = f"{program.mode}_{program.subject}.py"
    (folder / name).write_text(program.text)
    return ProgramSpec(
        (name,),
        folder,
        keras=program.setup.keras,
        limit=LIMIT,
        libraries=(str(libraries), str(files.PACKAGE.parent)),
        fork_server=python_process.fork_server(),
    )


def examine_benchmark_program(program: BenchmarkProgram) -> Examination:
    """Examines it as a reader's program, on as many devices as its setup says, and on one."""
    with tempfile.TemporaryDirectory() as place:
        spec = lay_out(program, Path(place).resolve())
        return plan.examine(spec, sorted({1, program.setup.devices}))
