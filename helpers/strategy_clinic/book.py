"""The stored notebooks, made ready for pages that no kernel stands behind; `make book` builds a site from them."""

import re
from pathlib import Path

from .base import files
from .base.display import MIME
from .base.files import write_whole
from .base.templates import from_template
from .experiments.verdicts import OUTCOMES, Verdict, rows
from .modes.registry import mode_by_id
from .panel.cards import NOTE
from .records import atlas
from .rendering import render, sources
from .setups.parameters import Setup

FOLDED = {  # what myst-nb does with a cell of this kind, and what its fold is called
    "bootstrap": ("remove-cell", ""),
    "claims": ("hide-input", "the code of these verdicts"),
    "solution": ("hide-cell", "the solution"),
    "panel": ("hide-input", "the code of the panel"),
    "records": ("remove-input", ""),
}


def prepare(folder: Path):
    """Writes the notebooks for the pages, each only if it changed: what is as it was is not read again."""
    folder.mkdir(exist_ok=True)
    texts = {path.name: page(path) for path in sorted(files.notebooks().glob("*.ipynb"))}
    for left in {path.name for path in folder.glob("*.ipynb")} - set(texts):
        (folder / left).unlink()
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            write_whole(folder / name, text)


def page(path: Path) -> str:
    """A notebook's text with long cells folded, pictures described, and reports as more than lines of text."""
    notebook = sources.read_notebook(path)
    if path.stem == "atlas":
        show_filters(notebook)
    if path.stem.startswith("fm"):
        notebook.cells.append(searched_for(mode_by_id(path.stem.split("_")[0])))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            fold(cell)
            for output in cell.outputs:
                describe(cell, output)
                speak(output.get("data", {}), path.stem)
                lead_to_pages(output.get("data", {}))
    return render.as_text(notebook)


def searched_for(mode):
    """The words of a mode's symptoms, so that whoever searches the pages for a message finds this one."""
    from nbformat.v4 import new_markdown_cell

    lines = [f"- `{symptom.raises}: {symptom.says}`" for symptom in mode.symptoms]
    text = "\n".join(["## Patterns of its messages", "", *lines])
    return new_markdown_cell(text, id="patterns")  # else it would be another one each time


def fold(cell):
    for kind in set(sources.tags(cell)) & set(FOLDED):
        tag, what = FOLDED[kind]
        prompts = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
        cell.metadata |= {"tags": [*sources.tags(cell), tag], "mystnb": prompts}


def describe(cell, output):
    """The content of a picture in words, where a page looks for it."""
    words = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    if words:
        cell.metadata.setdefault("mystnb", {})["image"] = {"alt": " ".join(words.split())}


def speak(data: dict, stem: str):
    """Gives an output its words as HTML: a step as a coloured line, a table as one, and where the panel can be had."""
    report = data.pop(MIME, {})
    if "table" in report:
        data["text/html"] = table_html(report["table"])
    elif report:
        data["text/html"] = line_html(data["text/plain"], outcome_of(report))
    elif data.get("text/plain") == NOTE:
        data.pop("text/html", None)
        data["text/markdown"] = f"*{NOTE}*\n\n{sources.badges(stem)}"


def lead_to_pages(data: dict):
    """A card leads to notebooks, which are pages here."""
    if re.search("clinic-(card|times)", data.get("text/html", "")):
        data["text/html"] = re.sub(r"(href='fm\w+)\.ipynb'", r"\1.html'", data["text/html"])


def outcome_of(report: dict) -> str:
    claim, found = report.get("claim", {}), report.get("verdict", {})
    return report.get("colour") or claim.get("verdict") or found.get("outcome", "")


def line_html(line: str, outcome: str) -> str:
    """'FM01 reproduced (executed) | NotImplementedError: …', with the step set off from what came of it."""
    step, _, said = line.partition(" | ")
    return from_template("panel/templates/line.html", step=step, said=said, outcome=outcome)


def table_html(lines: list[dict]) -> str:
    """The same table as in text; an outcome has its colour beside its word."""
    head, *body = rows([Verdict(**line | {"setup": Setup(**line["setup"])}) for line in lines])
    return from_template("panel/templates/table.html", names=head, rows=body, outcomes=OUTCOMES)


def cell_html(word: str) -> str:
    return from_template("panel/templates/cell.html", word=word, outcomes=OUTCOMES)


def show_filters(notebook):
    """The atlas as a table with filters that need no kernel, in place of its picture and of the filters that need one."""
    from nbformat.v4 import new_output

    cells = notebook.cells
    picture = next(cell for cell in cells if "records" in sources.tags(cell))
    panel = next(i for i, cell in enumerate(cells) if "panel" in sources.tags(cell))
    table = atlas.explorer_html("", ".html")
    picture.outputs = [new_output("display_data", {"text/html": table})]
    del cells[panel - 1 : panel + 1]  # with the paragraph that introduces it
