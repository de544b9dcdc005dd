"""Prepares the stored notebooks for web pages without a kernel; `make book` builds a site from them."""

import re
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from .base import files
from .base.display import MIME
from .base.files import write_whole
from .base.templates import from_template
from .modes.failure_mode import FailureMode
from .modes.groups import Group, groups
from .modes.registry import mode_by_id
from .panel.cards import NOTE
from .programs.verdicts import OUTCOMES, Verdict, rows
from .records import atlas, store, switches
from .rendering import render, sources
from .rendering.mode_notebooks import START
from .setups.parameters import Setup

FOLDED = {  # by a cell's tag: myst-nb's tag, and what the button that opens the cell is called
    "bootstrap": ("remove-cell", ""),
    "parameters": ("remove-cell", ""),
    "open": ("remove-cell", ""),
    "figure": ("hide-input", "the code of this picture"),
    "table": ("hide-input", "the code of this table"),
    "claims": ("hide-input", "the code that the cells below use"),
    "tests": ("hide-input", "the tests of sentences on this page"),
    "solution": ("hide-cell", "the solution"),
    "panel": ("remove-input", ""),
    "records": ("remove-input", ""),
}

# In place of widgets of a page that is not of a mode, by the call that shows them: where the site has the same.
INSTEAD = {
    "desk.box()": "On this site, the field for it is on the page [Find my error](../errors/index.md).",
    "finder.narrow()": "On this site, they are listed [by what you see](../errors/index.md) and, in [the atlas](atlas.ipynb), by "
    "document and strategy.",
    "page.fields()": "This site runs no program. Open the notebook, and write a number for each question there.",
    "examiner.program_box()": "This site runs no program. [`clinic examine`](../how_to/examine.md) does it in a terminal.",
}

# On the site, in place of the notebooks that lead on to triage and to the examiner.
ON_THE_SITE = {
    "00_start_here.ipynb": "../errors/index.md",
    "examine_your_code.ipynb": "../how_to/examine.md",
}

# On the site, below the title of the first notebook.
BY_WHAT_YOU_SEE = """By what you see: [an error](../errors/raises.md), [a warning](../errors/warns.md), [wrong
numbers](../errors/wrong_numbers.md), or a program that [does not end or is slow](../errors/slow.md)."""

# On the site beside the atlas; the page that `clinic atlas` writes has the tables themselves.
OF_KERAS = """## Classes of Keras on several replicas

[The sweep](../reference/sweep.md) compares every optimizer, loss, metric, layer, callback and saver of Keras on two and four
replicas with one device."""


def prepare(folder: Path) -> None:
    """Writes the notebooks of the pages and a page for each group of them.

    What has not changed is left as it is, since Sphinx reads again what is written.
    """
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    texts = {
        folder / path.relative_to(files.notebooks()): page(path)
        for path in files.stored_notebooks()
    }
    texts |= {folder / f"{group.name}.md": group_page(group) for group in groups()}
    for path in {*folder.glob("*.*"), *folder.glob("documents/*.*")} - texts.keys():
        path.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            write_whole(path, text)


def group_page(group: Group) -> str:
    return f"# {group.title}\n\n```{{generated}} group {group.name}\n```\n"


def page(path: Path) -> str:
    """Returns a notebook's text with long cells folded, pictures described, and reports as HTML."""
    notebook = sources.read_notebook(path)
    notebook.cells = [cell for cell in notebook.cells if cell.source != sources.UNPUBLISHED]
    if path.stem == "atlas":
        show_filters(notebook)
    if path.name == START:
        notebook.cells.insert(1, new_markdown_cell(BY_WHAT_YOU_SEE, id="kinds"))
    if files.page_source(path.stem).name == "page.py":
        mode = mode_by_id(path.stem.split("_")[0])
        add_switches(notebook, mode)
        lead_on(notebook)
        notebook.cells += [patterns_of(mode)] if "raises" in mode.outcomes else []
    notebook.cells = [without_widgets(cell) for cell in notebook.cells]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = program_alone(cell)
            fold(cell)
            for output in cell.outputs:
                describe_picture(cell, output)
                add_html(output.get("data", {}))
    return render.as_text(notebook)


def show_filters(notebook: NotebookNode) -> None:
    """Replaces the atlas's picture, and the filters that need a kernel, by a table with filters that need none."""
    cells = notebook.cells
    picture = next(cell for cell in cells if "records" in sources.tags(cell))
    panel = next(number for number, cell in enumerate(cells) if "panel" in sources.tags(cell))
    table = atlas.explorer_html("", ".html")
    picture.outputs = [new_output("display_data", {"text/html": table})]
    # Instead of the paragraph that introduces it.
    cells[panel - 1 : panel + 1] = [new_markdown_cell(OF_KERAS, id="sweep")]


def add_switches(notebook: NotebookNode, mode: FailureMode) -> None:
    """Replaces the panel's verdict on the page's own setup by controls that show every recorded one."""
    parameters = Setup(**store.parameters_of(notebook))
    panel = next(cell for cell in notebook.cells if "panel" in sources.tags(cell))
    html = switches.switch_html(mode, parameters)
    panel.outputs = [new_output("display_data", {"text/html": html})]


def lead_on(notebook: NotebookNode) -> None:
    """Leads those with another message, or with none, to the pages of the site for them."""
    cell = next(cell for cell in notebook.cells if "onward" in sources.tags(cell))
    for here, there in ON_THE_SITE.items():
        cell.source = cell.source.replace(f"({here})", f"({there})")


def without_widgets(cell: NotebookNode) -> NotebookNode:
    """Returns a cell, or instead of one whose widgets need a kernel a sentence that says where the site has the same."""
    shown = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    text = next((each for each in shown if NOTE in each), None)
    if text is None:
        return cell
    words = next(words for call, words in INSTEAD.items() if call in cell.source)
    instead: NotebookNode = new_markdown_cell(
        f"{words}\n\n{text.replace(NOTE, '')}".strip(), id=cell.id
    )
    return instead


def patterns_of(mode: FailureMode) -> NotebookNode:
    """Returns a cell with the patterns of a mode's messages, so that a search for a message finds the page."""
    raised = [each for each in mode.symptoms if each.outcome == "raises"]
    lines = [f"- `{symptom.raises}: {symptom.says}`" for symptom in raised]
    text = "\n".join(["## Patterns of its messages", "", *lines])
    cell: NotebookNode = new_markdown_cell(
        text, id="patterns"
    )  # without an id it gets a random one
    return cell


def program_alone(cell: NotebookNode) -> str:
    """Returns a program without the line that runs it in a notebook, so that it can be copied."""
    text: str = cell.source
    return text.partition("\n")[2] if sources.is_program(cell) else text


def fold(cell: NotebookNode) -> None:
    for kind in set(sources.tags(cell)) & set(FOLDED):
        tag, what = FOLDED[kind]
        prompts = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
        cell.metadata |= {"tags": [*sources.tags(cell), tag], "mystnb": prompts}


def describe_picture(cell: NotebookNode, output: NotebookNode) -> None:
    words = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    if words:
        cell.metadata.setdefault("mystnb", {})["image"] = {"alt": " ".join(words.split())}


def add_html(data: dict[str, Any]) -> None:
    """Adds HTML to an output: a coloured line for a step, or a table."""
    facts = data.pop(MIME, {})
    if "table" in facts:
        data["text/html"] = table_html(facts["table"])
    elif facts:
        verdict = facts.get("claim", {}).get("verdict") or facts.get("verdict", {}).get("outcome")
        data["text/html"] = line_html(data["text/plain"], facts.get("colour") or verdict or "")
    if re.search("clinic-(card|times)", data.get("text/html", "")):  # they link to notebooks
        data["text/html"] = re.sub(r"(href='fm\w+)\.ipynb'", r"\1.html'", data["text/html"])


def line_html(line: str, outcome: str) -> str:
    """Returns a line such as 'FM01 broken (executed) | NotImplementedError: …' with its first part in bold."""
    step, _, said = line.partition(" | ")
    return from_template("panel/templates/line.html", step=step, said=said, outcome=outcome)


def table_html(verdicts: list[dict[str, Any]]) -> str:
    """Returns the table of a step, with a colour for each outcome; what did not run has no evidence."""
    head, *body = rows(
        [Verdict(**verdict | {"setup": Setup(**verdict["setup"])}) for verdict in verdicts]
    )
    shown = [["" if word == "none" else word for word in words] for words in body]
    return from_template("panel/templates/table.html", names=head, rows=shown, outcomes=OUTCOMES)
