"""What `clinic show` does with a program: it checks the options, looks inside its steps, and writes what they hold."""

import argparse
from pathlib import Path

from ...base.errors import UserError
from ...inside import html, text
from ..runs.inside import look_inside
from ..runs.plan import MOST_DEVICES
from ..runs.program_spec import ProgramSpec
from .command import ended_like_ctrl_c, interpreter, require_room, write_page
from .program_input import with_notebook

DIFFERS = 1  # the exit status


def show_command(options: argparse.Namespace) -> int:
    """Shows what the replicas of a program hold, and returns the exit status: 1 if something differs."""
    if not 2 <= options.devices <= MOST_DEVICES:
        raise UserError(
            f"--devices {options.devices} cannot be shown beside one device; valid: 2 to {MOST_DEVICES}."
        )
    if options.html:
        require_room(options.html)
    program = ProgramSpec(
        tuple(options.program if options.module is None else ["-m", *options.module]),
        Path.cwd(),
        python=interpreter(options.python),
        keras=options.keras,
        limit=options.limit,
    )
    with ended_like_ctrl_c():
        tables = look_inside(with_notebook(program), options.devices, options.steps)
    print(text.in_short(tables))
    if options.html:
        write_page(options.html, html.page(tables))
        print(f"\nwrote {options.html}, with all {len(tables.steps)} steps")
    return DIFFERS if tables.first else 0
