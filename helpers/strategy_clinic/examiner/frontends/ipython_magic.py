"""`%load_ext strategy_clinic`: an uncaught exception is named, and `%%examine` examines a cell as a program."""

import functools
from pathlib import Path
from typing import Any

from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from ...base import project
from ...base.errors import UserError
from ...base.free_names import names_of
from ...triage import ipython_hook
from ..cells import Cell, is_program, listing_of, python_in
from ..report import html, text
from ..runs import plan
from ..runs.mend import mend_if
from ..runs.progress import Progress
from . import program_input

MAGIC = "examine"
FLAGS = {
    "--restart": "kill it at three moments, and start it again",
    "--no-restart": "never do so; otherwise once if it looks for its own saves",
    "--counts": "also report what decides about speed and memory",
    "--show": "also show what each replica holds, where the runs part",
    "--mend": "also show repairs that runs have proven",
    "--alone": "without the cells that ran before",
    "--with-history": "with them in any case",
    "--empty": "in an empty folder, without the files beside it",
}
FAILED: set[int] = set()  # cells of this session that raised, by the number that stands beside them


def load_ipython_extension(shell: Any) -> None:
    ipython_hook.register(shell)
    shell.events.register("post_run_cell", remember)
    magic = functools.partial(examine_cell, shell)
    magic.__doc__ = options_parser().format_help()  # what `%%examine?` shows
    shell.register_magic_function(magic, "cell", MAGIC)


def unload_ipython_extension(shell: Any) -> None:
    ipython_hook.unregister(shell)
    shell.events.unregister("post_run_cell", remember)
    shell.magics_manager.magics["cell"].pop(MAGIC, None)


def remember(result: Any) -> None:
    if not result.success and result.execution_count:
        FAILED.add(result.execution_count)


def device_counts(words: str) -> list[int | str]:
    """Returns the numbers in a list with commas; what is not a number stays as it is, and is refused by name later."""
    return [int(word) if word.strip().isdecimal() else word for word in words.split(",")]


def options_parser() -> MagicArgumentParser:
    parser = MagicArgumentParser(
        f"%%{MAGIC}",
        description="Runs this cell as a program on virtual CPU devices, watched, and says which failure modes it has. The "
        "kernel stays as it is. Cells that ran before are included if the cell uses names of theirs.",
    )
    for name, help_text in FLAGS.items():
        parser.add_argument(name, action="store_true", help=help_text)
    parser.add_argument("--devices", type=device_counts, default=[1, 2], help="such as 1,2,4")
    parser.add_argument("--keras", type=int, help="2 or 3; without it, what the program takes")
    parser.add_argument("--steps", type=int, default=0, help="after which a run is stopped")
    parser.add_argument("--limit", type=int, default=600, help="seconds for each run")
    return parser


def examine_cell(shell: Any, line: str, cell: str) -> None:
    """Examines a cell and displays the program with what was found."""
    options = options_parser().parse_argstring(line)
    if options.steps < 0 or options.limit < 1:
        raise UserError("--steps and --limit are whole numbers of at least 1.")
    number = number_of_cell(shell)
    earlier = chosen_cells(cell, earlier_cells(shell, number), options)
    cells = [
        *earlier,
        Cell(number, f"%%{MAGIC}\n{cell}"),
    ]  # a line is counted as the reader sees it
    listing = listing_of(f"cell {number}", cells)
    with program_input.empty_folder() as empty:
        folder = empty if options.empty else Path.cwd()
        program = program_input.program_here(
            folder, options.keras, options.limit, options.steps
        ).with_listing(listing)
        asked = options.devices, restart_in(options), print_progress
        examination = plan.examine(program, *asked, options.show)
        mend_if(options.mend, f"`%%{MAGIC} --mend`", program, examination, *asked)
    if earlier:
        examination.notes.append(included(earlier))
    links = project.published_notebooks()
    display(html.as_display(examination, listing, links, options.counts), raw=True)
    if examination.tables:
        display(html.tables_as_display(examination.tables), raw=True)


def restart_in(options: Any) -> bool | None:
    return False if options.no_restart else options.restart or None


def number_of_cell(shell: Any) -> int:
    """Returns the number of the running cell. Whether the shell has counted on by then depends on its version."""
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def print_progress(step: Progress) -> None:
    print(text.progress_in_words(step, seconds=False), flush=True)


# Cells that ran before


def earlier_cells(shell: Any, number: int) -> list[Cell]:
    """Returns each text once, where it ran first, without cells that raised and those of other magics."""
    texts = shell.history_manager.input_hist_raw[:number]
    cells: dict[str, Cell] = {}
    for count, source in enumerate(texts):
        if count and count not in FAILED and not source.lstrip().startswith(f"%%{MAGIC}"):
            cells.setdefault(source.strip(), Cell(count, source))
    return [cell for cell in cells.values() if is_program(python_in(cell).lines)]


def chosen_cells(source: str, earlier: list[Cell], options: Any) -> list[Cell]:
    """Returns the earlier cells if the options say so, or if a cell uses names that they define."""
    if options.alone:
        return []
    defined, used = names_in_cell(source)
    earlier_names = frozenset().union(*(names_in_cell(cell.text)[0] for cell in earlier))
    return earlier if options.with_history or (used - defined) & earlier_names else []


def names_in_cell(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names that a cell defines and uses; none if it is not Python."""
    try:
        defined, used = names_of("\n".join(python_in(Cell(1, source)).lines))
    except (SyntaxError, ValueError):
        return frozenset(), frozenset()
    return defined, used


def included(cells: list[Cell]) -> str:
    many = f"{len(cells)} cells" if len(cells) > 1 else "one cell"
    return f"{many} that ran before {'were' if len(cells) > 1 else 'was'} included; `%%{MAGIC} --alone` leaves them out"
