"""What a reader sees first: the words of the failure, the story, and no more code than opens the clinic."""

import ast
import re
from pathlib import Path

from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.programs.text import code_lines
from strategy_clinic.records import store
from strategy_clinic.rendering import sources
from strategy_clinic.setups import runtime
from strategy_clinic.triage import classify
from test_laws_pages import FM25, edit_notebook, mode_sources

MESSAGE = re.compile(r"\A# %% \[markdown\]\n(?:#.*\n)*?# ```text\n((?:#.*\n)+?)# ```\n")
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


def law_message() -> list[str]:
    """Under the title stands what people search for: of a mode that raises, messages of which none leads to another mode.

    The first leads to this one. A message of another mode is allowed where the block says whose it is.
    """
    problems = []
    for source in mode_sources():
        mode, block = registry.read_mode(source), MESSAGE.search(source.read_text())
        if not block:
            problems.append(f"{mode.id}: nothing of what one sees stands under the title")
            continue
        found, program = messages(block.group(1)), files.program_text(mode.id, "broken")
        leads = [classify.triage(f"{program}\n\n{message}").mode for message in found]
        if mode.loud == "loud" and mode.id not in leads[:1]:
            problems.append(f"{mode.id}: its first message leads to {leads[:1]}: {found[:1]}")
        problems += [
            f"{mode.id}: {message!r} leads to {other}"
            for message, other in zip(found, leads)
            if other not in (mode.id, None) and other.upper() not in block.group(1)
        ]
    return problems


def messages(block: str) -> list[str]:
    """Returns the line with which each error of a block begins, without the condition to its right."""
    lines = [line.removeprefix("#").strip() for line in block.splitlines()]
    return [re.split(r" {2,}", line)[0] for line in lines if CLASS.match(line)]


def law_recorded_messages() -> list[str]:
    """What the broken program raises, under any setup of the records, stands in the block under the title, or words of it do."""
    blocks = {
        mode.id: block_of(source)
        for source in mode_sources()
        for mode in [registry.read_mode(source)]
    }
    return [
        f"{verdict.mode} does not show: {verdict.says}"
        for keras in runtime.KERAS_VERSIONS
        for record in [store.read_record(f"cpu-keras{keras}")]
        for verdict in (record.verdicts if record else [])
        if verdict.broken == "raises" and not shares_words(verdict.says, blocks[verdict.mode])
    ]


def block_of(source: Path) -> str:
    """Returns the block under the title in one line."""
    found = MESSAGE.search(source.read_text())
    return " ".join(found.group(1).replace("#", "").split()) if found else ""


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
MUTATIONS = [
    (
        "law_recorded_messages",
        edit(
            FM12,
            """tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only
# created once or created outside tf.function. …""",
            "• inputs=tf.Tensor(shape=(1, 1), dtype=float32)",
        ),
    ),
    (
        "law_message",
        edit(
            FM16,
            "# ```text\n",
            "# ```text\n# NotImplementedError: numpy() is only available when eager execution is enabled.\n",
        ),
    ),
    ("law_message", edit(FM16, "# ```text\n", "# ```\n")),
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
