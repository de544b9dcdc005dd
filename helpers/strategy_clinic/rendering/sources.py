"""The sources of pages, in jupytext's percent format: found by name, made into notebooks, and written from notebooks."""

import ast
import copy
import functools
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from ..base import files, project
from ..base.display import say
from ..base.errors import UserError
from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..programs.text import SUBJECTS, with_notes, without_notes
from ..setups import parameters
from . import document_text, first_screen, frequent, mode_table

# In JupyterLab, and in Colab.
CODE_FOLDED: dict[str, Any] = {"jupyter": {"source_hidden": True}, "cellView": "form"}
EXTRA_METADATA: dict[str, dict[str, Any]] = {
    "solution": CODE_FOLDED,
    "claims": CODE_FOLDED,
    "tests": CODE_FOLDED,
    "parameters": CODE_FOLDED,
    "open": CODE_FOLDED | {"jupyter": {"source_hidden": True, "outputs_hidden": True}},
    "figure": CODE_FOLDED,
    "table": CODE_FOLDED,
    "bootstrap": {"tags": ["bootstrap", "nbval-ignore-output"]} | CODE_FOLDED,
    "panel": {"tags": ["nbval-ignore-output", "panel"]},
    "machine": {"tags": ["machine", "nbval-ignore-output"]},
    "compiled": {"tags": ["compiled", "nbval-ignore-output"]},
}
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MAGIC = "%%program "
TABLES = {
    "frequent": frequent.markdown,
    "map": mode_table.markdown,
}  # by the tag of the cell that gets one
ADDED = re.compile(r"\n\n(?:\||### )")  # how what is added to such a cell begins
BOOTSTRAP = Path(__file__).with_name("bootstrap.ipy")
ADDED_CELLS = {"badges", "bootstrap", "onward"}
FORM = "  # @param "
# What stands in place of an address while the project is not published.
UNPUBLISHED = (
    "No public address yet: to use this notebook in Colab, upload it and the wheel that "
    "`clinic wheel` writes."
)
WHEEL = "the wheel that `clinic wheel` writes, beside this notebook (Colab: Files, Upload)"


# Found by name


def sources(names: Sequence[str] = ()) -> list[Path]:
    """Returns the sources of all pages, or of those named by id, stem or path; raises UserError for an unknown name."""
    pages = files.page_sources()
    return [source for name in names for source in named(name, pages)] or pages


def named(name: str, pages: list[Path]) -> list[Path]:
    """Returns the page of this name, or the pages of all five documents for their common name."""
    return files.document_pages() if name == "documents" else [find_source(name, pages)]


def find_source(name: str, pages: list[Path]) -> Path:
    stem = Path(name).stem
    for path in pages:
        if stem in (files.page_name(path), files.page_id(path)):
            return path
    raise UserError(
        f"There is no notebook {name!r}; known: {', '.join(map(files.page_id, pages))}."
    )


def notebook_path(source: Path) -> Path:
    return files.notebook(source)


# From a source to a notebook


def notebook_of(source: Path) -> NotebookNode:
    """Returns a page's notebook without outputs: its cells but for the declaration, with what rendering adds to them."""
    notebook = copy.deepcopy(percent_notebook(source.read_text()))
    cells = [fill_in(cell, source) for cell in notebook.cells if "declaration" not in tags(cell)]
    if files.is_of_document(source):
        fill_in_document(cells, source)
    notebook.cells = with_added_cells(cells, source, registry.read_mode(source))
    notebook.metadata = KERNEL
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell, identity in zip(notebook.cells, cell_ids(notebook.cells)):
        cell.metadata = metadata(cell)
        cell["id"] = identity
    return notebook


@functools.cache
def percent_notebook(text: str) -> NotebookNode:
    """Parses a source; jupytext takes longer to read a text than everything else that is done with it."""
    notebook: NotebookNode = percent_format().reads(text, fmt="py:percent")
    return notebook


def percent_format() -> Any:
    """Returns jupytext, which only authors install, since it adds buttons to JupyterLab."""
    try:
        import jupytext
    except ImportError:
        raise UserError(
            "Rendering needs jupytext, which is not installed; run: pip install -e '.[test]'"
        ) from None
    return jupytext


def fill_in(cell: NotebookNode, source: Path) -> NotebookNode:
    """Adds to cells what is not in the page: programs, two tables, forms of Colab for the parameters that decide something."""
    for subject in SUBJECTS:
        if subject in tags(cell) and cell.source.startswith(f"# {subject}.py"):
            text = files.program_text(files.page_id(source), subject)
            cell.source = f"{MAGIC}{subject}\n{with_notes(text).strip()}"
    for tag in TABLES.keys() & set(tags(cell)):
        cell.source = f"{cell.source}\n\n{TABLES[tag](link='')}"
    if "parameters" in tags(cell):
        mode = registry.read_mode(source)
        used = (mode and mode.switches) or tuple(parameters.PARAMETERS)
        cell.source = "\n".join(with_form(line, used) for line in cell.source.splitlines())
    return cell


def fill_in_document(cells: list[NotebookNode], source: Path) -> None:
    """Adds to cells what follows from a document's statements, and code that a page has, too."""
    text = document_text.DocumentText(source)
    for cell in cells:
        for tag in set(document_text.TAGS) & set(tags(cell)):
            cell.source = text.filled(tag, cell.source)
        if cell.cell_type == "code":
            cell.source = document_text.with_borrowed(cell.source)


def with_form(line: str, used: Sequence[str]) -> str:
    """Returns a parameter, if it is used, with the comment that Colab reads as a form field, and papermill as its description."""
    name = line.split(" =")[0]
    valid = parameters.choices().get(name)
    if not valid or name not in used:
        return line
    kind = "" if isinstance(valid[0], str) else ' {type:"raw"}'  # else Colab would quote it
    return f"{line}{FORM}{json.dumps(valid)}{kind}"


def without_forms(code: str) -> str:
    return "\n".join(line.split(FORM)[0] for line in code.splitlines())


def typed(code: str) -> str:
    """Returns code as its author has typed it, without the forms and the comment of a page."""
    return without_notes(without_forms(code))


def tags(cell: NotebookNode) -> list[str]:
    found: list[str] = cell.metadata.get("tags", [])
    return found


def metadata(cell: NotebookNode) -> dict[str, Any]:
    names = ("tags", "lines_to_next_cell")
    values = {name: cell.metadata[name] for name in names if name in cell.metadata}
    extra = [EXTRA_METADATA[tag] for tag in tags(cell) if tag in EXTRA_METADATA]
    return values | (extra[0] if extra else {})


def cell_ids(cells: list[NotebookNode]) -> list[str]:
    """Returns an id for each cell that changes with its text only, also where two have the same text."""
    texts = [cell.source for cell in cells]
    numbered = [f"{texts[:i].count(text)} {text}" for i, text in enumerate(texts)]
    return [hashlib.sha256(text.encode()).hexdigest()[:12] for text in numbered]


def with_added_cells(
    cells: list[NotebookNode], source: Path, mode: FailureMode | None
) -> list[NotebookNode]:
    """Returns a page's cells with set-up after the first; launch links stand before it, and without an address at the end."""
    head, *rest = cells
    set_up = [added_cell("bootstrap", bootstrap(), "code", outputs=[], execution_count=None)]
    launch = [added_cell("badges", badges(source))]
    onward = [added_cell("onward", first_screen.ONWARD)] if mode else []
    if mode:
        head.source = first_screen.with_answer(head.source, mode)
    if project.address():
        return [head, *launch, *set_up, *rest, *onward]
    return [head, *set_up, *rest, *onward, *launch]


def added_cell(tag: str, text: str, kind: str = "markdown", **fields: Any) -> NotebookNode:
    """Returns a cell without a look at the schema, which would take as long as all else that is done with a page."""
    values = {"cell_type": kind, "metadata": {"tags": [tag]}, "source": text, **fields}
    cell: NotebookNode = nbformat.from_dict(values)
    return cell


def badges(source: Path) -> str:
    """Returns the launch links of a page, or a sentence if it has no address; nobody types an address."""
    if not project.address():
        return UNPUBLISHED
    repository, tag = project.setting()["repository"], project.setting()["tag"]
    path = files.notebook(source).relative_to(files.ROOT)
    blob = f"github.com/{repository}/blob/{tag}/{path}"
    links = {
        "Open in Colab": f"https://colab.research.google.com/{blob.replace('github.com', 'github')}",
        "Open in Kaggle": f"https://kaggle.com/kernels/welcome?src=https://{blob}",
        "Open in Binder": f"https://mybinder.org/v2/gh/{repository}/{tag}?urlpath=lab/tree/{path}",
    }
    return " · ".join(f"[{words}]({address})" for words, address in links.items())


def bootstrap() -> str:
    """Returns the code of the set-up cell, with the repository's address and tag if it is published."""
    address = project.address()
    source = f"git+{address}@{project.setting()['tag']}" if address else ""
    needed = "git, the internet (Kaggle: Settings)" if address else WHEEL
    text = BOOTSTRAP.read_text().strip()
    text = text.replace("ADDRESS", source).replace("NEEDED", needed)
    return text.replace("VERSIONS", project.python_versions())


# From a notebook to its source


def pull(path: Path, tell: Callable[[str], None] = say) -> None:
    """Writes edits made in Jupyter to the source; what rendering adds comes back when it is rendered."""
    notebook, target = read_notebook(path), files.page_source(path.stem)
    cells = [cell for cell in notebook.cells if not ADDED_CELLS & set(tags(cell))]
    cells[0].source = first_screen.as_written(cells[0].source)
    programs = program_cells(notebook)
    notebook.cells = [as_written(cell) for cell in cells[:1] + declaration(target) + cells[1:]]
    notebook.metadata = {
        "jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "tags,-all"}
    }
    text = percent_format().writes(notebook, fmt="py:percent")
    ast.parse(text)
    target.write_text(text)
    for subject, program in programs.items():
        target.with_name(f"{subject}.py").write_text(program)
    tell(f"wrote {target.relative_to(files.ROOT)}; now run: clinic render {files.page_id(target)}")


def program_cells(notebook: NotebookNode) -> dict[str, str]:
    """Returns the text of each program in a notebook."""
    texts = [cell.source.partition("\n") for cell in notebook.cells if is_program(cell)]
    return {
        first.removeprefix(MAGIC).strip(): without_notes(f"{text.strip()}\n")
        for first, _, text in texts
    }


def is_program(cell: NotebookNode) -> bool:
    return bool(cell.cell_type == "code" and cell.source.startswith(MAGIC))


def declaration(source: Path) -> list[NotebookNode]:
    """Returns the cell that no notebook has, from the source as it is so far."""
    cells = percent_notebook(source.read_text()).cells if source.exists() else []
    return [copy.deepcopy(cell) for cell in cells if "declaration" in tags(cell)]


def as_written(cell: NotebookNode) -> NotebookNode:
    """Removes from a cell what rendering has added: a tag, a table, the form."""
    cell.metadata["tags"] = [tag for tag in tags(cell) if tag != "nbval-ignore-output"]
    if not cell.metadata["tags"]:
        del cell.metadata["tags"]
    if is_program(cell):
        cell.source = f"# {cell.source.split()[1]}.py"
    if TABLES.keys() & set(tags(cell)):
        cell.source = ADDED.split(cell.source)[0]
    if "parameters" in tags(cell):
        cell.source = without_forms(cell.source)
    for tag in set(document_text.TAGS) & set(tags(cell)):
        cell.source = document_text.as_written(tag, cell.source)
    if cell.cell_type == "code":
        cell.source = document_text.without_borrowed(cell.source)
    return cell


# Notebooks that are files


def stored_notebook(path: Path) -> NotebookNode:
    """Reads a notebook that is not to be changed: the same text is parsed once."""
    return parsed_notebook(path.read_text())


@functools.cache
def parsed_notebook(text: str) -> NotebookNode:
    notebook: NotebookNode = nbformat.reads(text, as_version=4)
    return notebook


def read_notebook(path: Path) -> NotebookNode:
    """Reads a user's notebook; raises UserError if there is no such file or it is not a notebook."""
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        return notebook
    except FileNotFoundError:
        raise UserError(f"There is no file {str(path)!r}.") from None
    except Exception as error:  # nbformat raises its own, json's and jsonschema's kinds
        raise UserError(
            f"{str(path)!r} is not a notebook ({type(error).__name__}); give a .ipynb file."
        ) from None
