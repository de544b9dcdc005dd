"""What `clinic examine` does with a program: it checks the options, examines, and writes the reports."""

import argparse
import contextlib
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from ...base.errors import UserError
from ...base.files import write_whole
from ...inside.html import is_page
from ..findings import Examination
from ..report import html, machine_readable, terminal, text
from ..runs import plan
from ..runs.mend import mend_if
from ..runs.program_spec import ProgramSpec
from .program_input import with_notebook


def examine_command(options: argparse.Namespace) -> int:
    """Examines the program that the command names, and returns the exit status.

    Progress goes to standard error, so that the report, as text or as JSON, has standard output.
    """
    arguments = options.program if options.module is None else ["-m", *options.module]
    if len(options.keras) > 1:
        raise UserError(
            "A program is examined on one version of Keras at a time: give --keras 2 or --keras 3."
        )
    for file in (options.json, options.sarif):
        if file and not Path(file).absolute().parent.is_dir():
            raise UserError(f"There is no folder to write {str(file)!r} into.")
    if options.show:
        require_room(options.show)
    program = ProgramSpec(
        tuple(arguments),
        Path.cwd(),
        python=interpreter(options.python),
        keras=next(iter(options.keras), None),
        limit=options.limit,
        steps=options.steps,
    )
    with ended_like_ctrl_c(), terminal.progress() as report:
        program = with_notebook(program)
        examination = plan.examine(
            program, options.devices, options.restart, report, bool(options.show)
        )
        asked = options.devices, options.restart, report
        mend_if(options.mend, "--mend", program, examination, *asked)
    write_reports(examination, program.folder, options)
    return text.exit_status(examination)


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Lets a SIGTERM, or a terminal that is closed, end the program under examination too; the report says what is known.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    """
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interpreter(name: str) -> str:
    """Returns an absolute path. Symbolic links in it stay, since a virtual environment is one."""
    path = shutil.which(name)
    if not path:
        raise UserError(f"{name!r} is not a Python that can be run here: give another --python.")
    return str(Path.cwd() / path)


def write_reports(examination: Examination, folder: Path, options: argparse.Namespace) -> None:
    as_json = json.dumps(machine_readable.as_json(examination), indent=2)
    if options.json == "-":
        print(as_json, flush=True)
    else:
        terminal.show_report(examination, options.counts)
        if options.json:
            write_whole(Path(options.json), as_json + "\n")
    if options.sarif:
        sarif = machine_readable.as_sarif(examination, folder)
        write_whole(options.sarif, json.dumps(sarif, indent=2) + "\n")
    if options.show and examination.tables:
        write_page(options.show, html.page_of(examination, examination.tables))
        said = sys.stderr if options.json == "-" else sys.stdout
        print(f"wrote {options.show}: {examination.tables.headline}", file=said)


# Pages that show what each replica holds


def require_room(file: Path) -> None:
    """Raises UserError if a page cannot be written there: a file that is no such page is not replaced."""
    if not file.absolute().parent.is_dir():
        raise UserError(f"There is no folder to write {str(file)!r} into.")
    if file.is_dir() or (file.exists() and not is_page(file.read_text(errors="replace"))):
        raise UserError(
            f"{str(file)!r} is there already, and is no page of this command: give another name."
        )


def write_page(file: Path, page: str) -> None:
    """Writes a page, unless a file of another kind has come there since the command began."""
    require_room(file)
    write_whole(file, page)
