"""What a reader sees first: the words of the failure, the story, and no more code than opens the clinic."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.modes import kinds, registry
from strategy_clinic.programs.text import code_lines
from strategy_clinic.records import store
from strategy_clinic.rendering import sources
from strategy_clinic.setups import runtime
from strategy_clinic.triage import classify
from test_laws_pages import FM25, edit_notebook, mode_sources

HEAD = "| Message | Raised by | Keras |\n|---|---|---|\n"
MOST_ROWS = 6
LONGEST_CAUSE = 41  # words
KERAS = re.compile(r"2, 3|[23]|3\.\d+|3 before 3\.\d+")
CLASS = re.compile(r"[A-Za-z.]*(?:Error|Exception): ")
IN_A_ROW = 3  # words of a message
FIRST_SCREEN = 20  # lines of code that may stand before the story


def law_first_screen() -> list[str]:
    """A page begins with its story: set-up, parameters and the line that opens the clinic, and no more code before it."""
    return [
        f"{path.name}: {count} lines of code before its first heading"
        for path in map(sources.notebook_path, mode_sources())
        if (count := lines_before_story(path)) > FIRST_SCREEN
    ]


def lines_before_story(path: Path) -> int:
    """Lines with code, set-up and parameters included."""
    count = 0
    for cell in sources.stored_notebook(path).cells:
        if cell.source.startswith("## "):
            return count
        count += len(code_lines(cell.source)) if cell.cell_type == "code" else 0
    return count


def law_declared_apart() -> list[str]:
    """What a page declares is in no notebook, and a notebook opens its own mode."""
    problems = []
    for source in mode_sources():
        mode, page = registry.read_mode(source), sources.notebook_path(source).read_text()
        if "FailureMode(" in page or f'clinic.open(\\"{mode.id}\\", ' not in page:
            problems.append(f"{mode.id}: its notebook declares a mode, or opens another")
    return problems


def law_strategy_stays_a_word() -> list[str]:
    """`strategy` is the parameter wherever a page speaks of it; the object has that name in functions only."""
    return [
        f"{files.page_name(source)}:{name.lineno}: strategy is no longer the parameter"
        for source in mode_sources()
        for statement in ast.parse(source.read_text()).body
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id == "strategy"
        if not isinstance(statement.value, ast.Constant)
    ]


def law_table() -> list[str]:
    """A page begins with its title, at most six messages, each with what raises it on which Keras, the cause, and the status."""
    problems = []
    for source in mode_sources():
        mode, parts = registry.read_mode(source), first_cell(source).split("\n\n")
        starts = [parts[0][:2], parts[1][: len(HEAD)], parts[-1][:1], parts[-1][-1:]]
        if (
            starts != ["# ", HEAD, "*", "*"]
            or not parts[2:-1]
            or parts[2][0] in "*|"
            or "```" in str(parts)
        ):
            problems.append(f"{mode.id}: its first cell is not title, table, cause and status")
        table = rows(source)
        if (count := len(" ".join(parts[2:-1]).split())) > LONGEST_CAUSE:
            problems.append(
                f"{mode.id}: the cause has {count} words; the rest belongs below, to the reasons"
            )
        if len(table) > MOST_ROWS:
            problems.append(f"{mode.id}: {len(table)} messages stand on the first screen")
        problems += [
            f"{mode.id}: {' | '.join(row)}"
            for row in table
            if len(row) != 3 or not all(row) or not KERAS.fullmatch(row[2])
        ]
    return problems


def law_silence() -> list[str]:
    """A mode that shows a wrong result says what one sees instead of a message."""
    return [
        f"{mode.id}: no row says what one sees without an error"
        for source in mode_sources()
        for mode in [registry.read_mode(source)]
        if "wrong" in mode.outcomes and not any(is_no_error(row[0]) for row in rows(source))
    ]


def is_no_error(message: str) -> bool:
    """Whether a message is none, or a warning, which begins with no class of an error."""
    return message.startswith(kinds.NO_MESSAGE) or not CLASS.match(message)


def law_fix() -> list[str]:
    """The fix is one line, with the words that triage says too, and the page's first cell has it."""
    return [
        f"{mode.id}: {mode.fix}"
        for source in mode_sources()
        for mode in [registry.read_mode(source)]
        if f"\n\n**Fix:** {mode.fix}.\n\n" not in shown(source) or mode.fix.endswith(".")
    ]


def shown(source: Path) -> str:
    """Returns the first cell of a page's notebook."""
    return sources.stored_notebook(sources.notebook_path(source)).cells[0].source


def law_way_on() -> list[str]:
    """A page ends with the way for those who have another message, or none."""
    wanted = {"00_start_here.ipynb", "examine_your_code.ipynb"}
    problems = []
    for path in map(sources.notebook_path, mode_sources()):
        cells = sources.stored_notebook(path).cells[-2:]
        last = "".join(cell.source for cell in cells if "onward" in sources.tags(cell))
        if set(re.findall(r"\]\((.+?)\)", last)) != wanted:
            problems.append(f"{path.name} does not lead on: {last}")
    return problems


def law_on_gpus() -> Iterator[str]:
    """A program that splits the CPU says in a comment what to write on GPUs, and its file does not."""
    return (
        f"{mode.id}: {cell.source.splitlines()[0]}"
        for source in mode_sources()
        for mode in [registry.read_mode(source)]
        for cell in sources.notebook_of(source).cells
        if sources.is_program(cell) and '_devices("CPU")' in cell.source.replace("'", '"')
        if cell.source.count("  # on GPUs: ") != 1
    )


def law_message() -> Iterator[str]:
    """In the table stands what people search for: of a mode that raises, messages of which none leads to another mode.

    The first leads to this one. A message of another mode is allowed where its row says whose it is.
    """
    for source in mode_sources():
        mode = registry.read_mode(source)
        program = files.program_text(mode.id, "broken")
        found = [(message, by) for message, by, _ in rows(source) if CLASS.match(message)]
        leads = [classify.triage(f"{program}\n\n{message}").mode for message, _ in found]
        if mode.outcomes == ("raises",) and mode.id not in leads[:1]:
            yield f"{mode.id}: its first message leads to {leads[:1]}: {found[:1]}"
        for (message, by), other in zip(found, leads):
            if other not in (mode.id, None) and other.upper() not in by:
                yield f"{mode.id}: {message!r} leads to {other}"


def first_cell(source: Path) -> str:
    """Returns the first cell of a page as its author has written it."""
    cell: str = sources.percent_notebook(source.read_text()).cells[0].source
    return cell


def rows(source: Path) -> list[list[str]]:
    """Returns the rows of the table of messages, each as its cells: the message is without the signs of code."""
    lines = [line for line in first_cell(source).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]
    return [
        [re.sub(r"^(no message: )?`+ ?(.*?) ?`+$", r"\1\2", first), *rest] for first, *rest in cells
    ]


def law_recorded_messages() -> list[str]:
    """What the broken program raises, under any setup of the records, stands in the table, or words of it do."""
    tables = {
        registry.read_mode(source).id: "\n".join(map(" ".join, rows(source)))
        for source in mode_sources()
    }
    return [
        f"{verdict.mode} does not show: {verdict.says}"
        for keras in runtime.KERAS_VERSIONS
        for record in [store.read_record(f"cpu-keras{keras}")]
        for verdict in (record.verdicts if record else [])
        if verdict.broken == "raises" and not shares_words(verdict.says, tables[verdict.mode])
    ]


def shares_words(message: str, block: str) -> bool:
    """Whether so many words of a message in a row stand in a block, which leaves out names and ends."""
    words = message.split()
    return any(
        " ".join(words[at : at + IN_A_ROW]) in block
        for at in range(max(1, len(words) - IN_A_ROW + 1))
    )


def story_after_code(root):
    edit_notebook(root, lambda cell: cell.update(source=cell["source"] + "\na = 1" * 10))


FM16 = "helpers/strategy_clinic/modes/fm16_tpu_eager_run/page.py"
FM12 = "helpers/strategy_clinic/modes/fm12_variables_recreated/page.py"
FM19 = "helpers/strategy_clinic/modes/fm19_partial_last_batch"
SHOWN19 = "notebooks/fm19_partial_last_batch.ipynb"
HEAD_LINES = "# | Message | Raised by | Keras |\n# |---|---|---|\n"
NUMPY = "`NotImplementedError: numpy() is only available when eager execution is enabled.`"
MUTATIONS = [
    (
        "law_recorded_messages",
        edit(
            FM12,
            "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
            "created once or created outside tf.function. …",
            "• inputs=tf.Tensor(shape=(1, 1), dtype=float32)",
        ),
    ),
    ("law_message", edit(FM16, HEAD_LINES, f"{HEAD_LINES}# | {NUMPY} | `get_weights()` | 3 |\n")),
    ("law_table", edit(FM16, HEAD_LINES, "# ```\n")),
    ("law_table", edit(FM16, HEAD_LINES, HEAD_LINES + "# | `a` | `b` | 3 |\n" * 6)),
    ("law_table", edit(FM16, "under `TPUStrategy` | 2, 3 |", "under `TPUStrategy` | all |")),
    ("law_table", edit(FM16, "# *Raises on", "# Raises on")),
    ("law_table", edit(FM16, "# A TPU runs", f"# {'It is so. ' * 20}A TPU runs")),
    ("law_silence", edit(f"{FM19}/page.py", "no message: `mean", "`ValueError: mean")),
    ("law_fix", edit(f"{FM19}/page.py", 'fix="update', 'fix="again update')),
    ("law_fix", edit(SHOWN19, "**Fix:** ", "**Fix** ")),
    ("law_way_on", edit(SHOWN19, "(examine_your_code.ipynb)", "(fm01.ipynb)")),
    ("law_way_on", edit(SHOWN19, '"onward"', '"on"')),
    ("law_on_gpus", edit(f"{FM19}/broken.py", '_devices("CPU")[0]', "_devices('CPU')[0]")),
    ("law_first_screen", story_after_code),
    (
        "law_strategy_stays_a_word",
        edit(
            FM16,
            "\nsession.panel(",
            "\nstrategy = build_strategy(session.setup)\nsession.panel(",
        ),
    ),
    (
        "law_declared_apart",
        edit(
            f"{FM25}.ipynb",
            "import strategy_clinic as clinic",
            "MODE = FailureMode()\\nimport strategy_clinic as clinic",
        ),
    ),
    ("law_declared_apart", edit(f"{FM25}.ipynb", 'clinic.open(\\"fm25', 'clinic.open(\\"fm05')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
