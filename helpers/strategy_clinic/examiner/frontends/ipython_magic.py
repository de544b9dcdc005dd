"""`%load_ext helpers`: an uncaught exception is named, and `%%examine` examines a cell as a program, in processes of its own."""

import functools
import re
from pathlib import Path

from IPython.core import magic_arguments

from ...base.errors import UserError
from ...triage import ipython_hook

MAGIC = "examine"
FAILED: set[int] = set()  # cells of this session that raised, by the number that stands beside them
LASTING = re.compile(r" after [\d.]+ s$")


def load_ipython_extension(shell):
    ipython_hook.register(shell)
    shell.events.register("post_run_cell", remember)
    of_shell = functools.update_wrapper(functools.partial(examine_cell, shell), examine_cell)
    shell.register_magic_function(of_shell, "cell", MAGIC)


def unload_ipython_extension(shell):
    ipython_hook.unregister(shell)
    shell.events.unregister("post_run_cell", remember)
    shell.magics_manager.magics["cell"].pop(MAGIC, None)


def remember(result):
    if not result.success and result.execution_count:
        FAILED.add(result.execution_count)


def counts_in(text: str) -> list:
    """What is no number stays as it is, and is refused by name later."""
    return [int(word) if word.strip().isdigit() else word for word in text.split(",")]


@magic_arguments.magic_arguments()
@magic_arguments.argument("--devices", type=counts_in, default=[1, 2], help="such as 1,2,4")
@magic_arguments.argument("--keras", type=int, help="2 or 3; without it, what the program takes")
@magic_arguments.argument("--restart", action="store_true", help="kill it once, and start it again")
@magic_arguments.argument("--steps", type=int, default=0, help="after which a run is stopped")
@magic_arguments.argument("--limit", type=int, default=600, help="seconds for each run")
@magic_arguments.argument("--alone", action="store_true", help="without the cells that ran before")
@magic_arguments.argument("--with-history", action="store_true", help="with them in any case")
@magic_arguments.argument(
    "--empty", action="store_true", help="in an empty folder, without the files beside it"
)
def examine_cell(shell, line, cell):
    """Runs this cell as a program on virtual CPU devices, watched, and says which failure modes it has.

    The kernel stays as it is. Cells that ran before come along where the cell uses names of theirs.
    """
    options = magic_arguments.parse_argstring(examine_cell, line)
    if options.steps < 0 or options.limit < 1:
        raise UserError("--steps and --limit are whole numbers of at least 1.")
    return show_examined(shell, cell, options)


def show_examined(shell, text: str, options):
    from IPython.display import display

    from ..cells import Cell
    from ..report import html, serialize
    from . import program_input

    number = number_of_cell(shell)
    earlier = earlier_cells(shell, number)
    taken = chosen_cells(text, earlier, options)
    cells = [*taken, Cell(number, f"%%{MAGIC}\n{text}")]  # a line is counted as the reader sees it
    listing = program_input.listing_of(f"cell {number}", cells)
    with program_input.empty_folder() as empty:
        folder = empty if options.empty else Path.cwd()
        program = program_input.case_here(folder, options.keras, options.limit, options.steps)
        asked = (options.devices, options.restart, say_stage)
        found, stuck = program_input.examine_listing(listing, program, *asked)
    if taken:
        found.notes.append(came_along(taken))
    display(html.as_display(found, listing, stuck, serialize.published()), raw=True)


def number_of_cell(shell) -> int:
    """Of the cell that is running; whether the shell's own count has gone on by then depends on its version."""
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def say_stage(line: str):
    """Without seconds, so that a stored notebook says the same each time."""
    print(LASTING.sub("", line), flush=True)


# Cells that ran before


def earlier_cells(shell, number: int) -> list:
    """Each text once, where it ran first; what raised is left out, and so is what another magic runs."""
    from ..cells import Cell, is_program, python_in

    texts = shell.history_manager.input_hist_raw[:number]
    found = {}
    for count, text in enumerate(texts):
        if count and count not in FAILED and not text.lstrip().startswith(f"%%{MAGIC}"):
            found.setdefault(text.strip(), Cell(count, text))
    return [each for each in found.values() if is_program(python_in(each)[0])]


def chosen_cells(text: str, earlier: list, options) -> list:
    if options.alone:
        return []
    if options.with_history:
        return earlier
    return earlier if uses_of(text) & made_by(earlier) else []


def made_by(cells: list) -> frozenset:
    return frozenset().union(*(names_in_cell(each.text)[0] for each in cells))


def uses_of(text: str) -> frozenset:
    """The names that a cell takes from elsewhere."""
    made, used = names_in_cell(text)
    return used - made


def names_in_cell(text: str) -> tuple[frozenset, frozenset]:
    """The names that a cell makes and uses; of what is no Python, none."""
    from ...base.free_names import names_of
    from ..cells import Cell, python_in

    try:
        return names_of("\n".join(python_in(Cell(1, text))[0]))
    except (SyntaxError, ValueError):
        return frozenset(), frozenset()


def came_along(cells: list) -> str:
    many = f"{len(cells)} cells" if len(cells) > 1 else "one cell"
    return f"{many} that ran before came along; `%%{MAGIC} --alone` does without"
