"""What replicas hold in the steps of the programs of a page: each runs on virtual devices and on one."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ...inside.tables import Tables
from ...programs.run import AT_ONCE, SECONDS
from ...programs.switches import for_setup
from ...setups import strategies
from ...setups.parameters import Setup
from ..runs.inside import USUAL_STEPS, look_inside
from . import program_input


def tables_of_all(texts: Mapping[str, str], setup: Setup) -> dict[str, Tables]:
    """Returns the tables of programs by their names; the programs run side by side."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(texts, pool.map(lambda text: tables_of(text, setup, 1), texts.values())))


def tables_of(text: str, setup: Setup, at_once: int = AT_ONCE) -> Tables:
    """Returns the tables of a program of a page, with the lines of a setup; its two runs may go on at once."""
    setup.require()
    with program_input.empty_folder() as folder:
        (folder / "program.py").write_text(for_setup(text, setup, "CPU"))
        program = program_input.program_here(folder, setup.keras, SECONDS)
        program = replace(program, arguments=("program.py",))
        expected = setup.devices if at_once > 1 else 0
        cluster = setup.strategy if strategies.TABLE[setup.strategy].tasks else ""
        return look_inside(program, setup.devices, USUAL_STEPS, expected, cluster)
