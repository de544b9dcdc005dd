"""What a page shows of the steps of its program: what each replica holds, as a picture."""

from dataclasses import replace

from ...panel import figures
from ...programs.switches import for_setup
from ...setups.parameters import Setup
from ..runs.inside import look_inside
from . import program_input


def inside(text: str, setup: Setup) -> figures.Picture:
    """Runs a program of a page on virtual devices and on one, and draws what each replica holds."""
    with program_input.empty_folder() as folder:
        (folder / "program.py").write_text(for_setup(text, setup, "CPU"))
        program = program_input.program_here(folder, setup.keras)
        tables = look_inside(replace(program, arguments=("program.py",)), setup.devices)
    return figures.inside(tables)
