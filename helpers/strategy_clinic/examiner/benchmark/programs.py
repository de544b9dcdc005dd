"""Programs of the benchmark: those of the modes, as people with the devices would write them."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base import files
from ...base.errors import UserError, choose
from ...modes.registry import mode_by_id
from ...processes import python_process
from ...programs import switches
from ...programs.text import WRONG, marked_lines
from ...setups import strategies
from ...setups.parameters import Setup
from ..findings import Examination
from ..rule import mode_rules
from ..runs import plan
from ..runs.program_spec import ProgramSpec

SUBJECTS = "broken", "fixed", "solution"
LIMIT = 120  # seconds for a run
ONE_PROCESS = "valid: default, one_device, mirrored, central_storage, tpu_traced"
ALL_DEVICES = ("strategy = tf.distribute.MirroredStrategy()",)


@dataclass(frozen=True)
class BenchmarkProgram:
    """One program of one mode, under one setup."""

    mode: str
    subject: str
    setup: Setup
    text: str

    @property
    def guilty(self) -> tuple[int, ...]:
        """The lines that the examiner is to blame."""
        return tuple(marked_lines(self.text, WRONG))

    @property
    def expected(self) -> str:
        """Returns how it ends: `raises`, `wrong` or `works`."""
        outcome: str = mode_by_id(self.mode).expects(self.setup)
        return outcome if self.subject == "broken" else "works"

    @property
    def is_broken(self) -> bool:
        return self.expected != "works"

    @property
    def is_sought(self) -> bool:
        """Tells whether a rule looks for the mode, or else triage names what it raises."""
        has_rule = bool(files.program_text(self.mode, "rule"))
        noted = {each.mode for each in mode_rules().rules if not each.finds_own_program}
        return self.expected == "raises" or (has_rule and self.mode not in noted)


def benchmark_programs(
    modes: Sequence[str], keras: int, strategy: str = ""
) -> list[BenchmarkProgram]:
    """Returns the programs of some modes, or of all, under their own setup or under another strategy."""
    chosen = [path for mode, path in files.mode_pages().items() if not modes or mode in modes]
    return [program for path in chosen for program in programs_of(path, keras, strategy)]


def programs_of(page: Path, keras: int, strategy: str = "") -> list[BenchmarkProgram]:
    """Returns the programs of a mode that have a meaning under the setup."""
    mode = files.page_id(page)
    setup = setup_in(ast.parse(page.read_text()), keras, strategy)
    if mode_by_id(mode).reason_against(setup):
        return []
    return [
        BenchmarkProgram(mode, subject, setup, as_written(files.program_text(mode, subject), setup))
        for subject in SUBJECTS
    ]


def as_written(text: str, setup: Setup) -> str:
    """Returns a program under a setup; `MirroredStrategy()` takes all devices, whose number the examiner decides."""
    text = switches.for_setup(text, setup)
    if setup.strategy == "mirrored" and setup.devices > 1:
        text = "\n".join([*switches.with_strategy(text.splitlines(), ALL_DEVICES), ""])
    return text


def setup_in(tree: ast.Module, keras: int, strategy: str) -> Setup:
    """Returns what the notebook's parameters say, with this version of Keras, and perhaps another strategy."""
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


def lay_out(program: BenchmarkProgram, place: Path) -> ProgramSpec:
    """Writes a folder with the program."""
    folder = place / "program"
    folder.mkdir()
    name = f"{program.mode}_{program.subject}.py"
    (folder / name).write_text(program.text)
    return ProgramSpec(
        (name,),
        folder,
        keras=program.setup.keras,
        limit=LIMIT,
        fork_server=python_process.fork_server(),
    )


def examine_benchmark_program(program: BenchmarkProgram) -> Examination:
    """Examines it as a reader's program, on as many devices as its setup says, and on one."""
    with tempfile.TemporaryDirectory() as place:
        spec = lay_out(program, Path(place).resolve())
        return plan.examine(spec, sorted({1, program.setup.devices}))
