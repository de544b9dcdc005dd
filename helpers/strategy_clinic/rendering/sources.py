"""Notebooks as text: the percent format that a person edits, the cells that nobody types, and the way back."""

import ast
import copy
import functools
import hashlib
import json
from pathlib import Path

import nbformat

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..base.project import setting
from ..setups import parameters
from . import catalog


def with_cell(path: Path, code: str) -> str:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    return nbformat.writes(notebook)


def stored_notebook(path: Path):
    """A notebook as it is stored, to be read and never changed: checking its format is done once for the same text."""
    return notebook_in(path.read_text())


@functools.cache
def notebook_in(text: str):
    return nbformat.reads(text, as_version=4)


# In JupyterLab, and in Colab.
CODE_FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}
EXTRA_METADATA = {
    "solution": CODE_FOLDED,
    "claims": CODE_FOLDED,
    "bootstrap": {"tags": ["bootstrap", "nbval-ignore-output"]} | CODE_FOLDED,
    "panel": {"tags": ["nbval-ignore-output", "panel"]},
    "machine": {"tags": ["machine", "nbval-ignore-output"]},
    "compiled": {"tags": ["compiled", "nbval-ignore-output"]},
}
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
BOOTSTRAP = Path(__file__).with_name("bootstrap.ipy")
FORM = "  # @param "


def sources(names=()) -> list[Path]:
    """The notebooks' sources, all or those named by id, stem or path; an unknown name is refused."""
    every = files.page_sources()
    return [find(name, every) for name in names] or every


def find(name: str, every: list[Path]) -> Path:
    stem = Path(name).stem
    for path in every:
        if stem in (files.page_name(path), page_id(path)):
            return path
    raise UserError(f"There is no notebook {name!r}; known: {', '.join(map(page_id, every))}.")


def page_id(source: Path) -> str:
    """Returns what a command calls a page: the id of its mode, or the first word of its name."""
    return files.page_name(source).split("_")[0]


def notebook_path(source: Path) -> Path:
    """Where the notebook of a source lies."""
    return files.notebooks() / f"{files.page_name(source)}.ipynb"


def notebook_of(source: Path):
    """The notebook that a source describes, with the cells that nobody types, and without declaration and outputs."""
    notebook = copy.deepcopy(percent_notebook(source.read_text()))
    cells = [filled(cell) for cell in notebook.cells if "declaration" not in tags(cell)]
    notebook.cells = cells[:1] + written_cells(files.page_name(source)) + cells[1:]
    notebook.metadata = KERNEL
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = metadata(cell)
    for cell, name in zip(notebook.cells, cell_ids(notebook.cells)):
        cell["id"] = name
    return notebook


@functools.cache
def percent_notebook(text: str):
    """Reading a text takes jupytext longer than all that is done with it."""
    return percent_format().reads(text, fmt="py:percent")


def percent_format():
    """jupytext; it adds buttons to JupyterLab, so only those who write notebooks install it."""
    try:
        import jupytext
    except ImportError:
        raise UserError(
            "Rendering needs jupytext, which is not installed; run: pip install -e '.[test]'"
        ) from None
    return jupytext


def filled(cell):
    """Two cells get what tables know: the map of modes, and the form that Colab makes of the parameters."""
    if "map" in tags(cell):
        cell.source = f"{cell.source}\n\n{catalog.markdown(link='')}"
    if "parameters" in tags(cell):
        cell.source = "\n".join(field(line) for line in cell.source.splitlines())
    return cell


def field(line: str) -> str:
    """A parameter with the comment that Colab reads as a choice in a form, and papermill as its description."""
    valid = parameters.choices().get(line.split(" =")[0])
    if not valid:
        return line
    kind = "" if isinstance(valid[0], str) else ' {type:"raw"}'  # else Colab would quote it
    return f"{line}{FORM}{json.dumps(valid)}{kind}"


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def metadata(cell) -> dict:
    extra = [EXTRA_METADATA[tag] for tag in tags(cell) if tag in EXTRA_METADATA]
    kept = {
        key: cell.metadata[key] for key in ("tags", "lines_to_next_cell") if key in cell.metadata
    }
    return kept | (extra[0] if extra else {})


def cell_ids(cells) -> list[str]:
    texts = [cell.source for cell in cells]
    numbered = [f"{texts[:i].count(text)} {text}" for i, text in enumerate(texts)]
    return [hashlib.sha256(text.encode()).hexdigest()[:12] for text in numbered]


def badges(stem: str) -> str:
    """Launch links, computed from the path: nobody types an address."""
    repository, tag = setting()["repository"], setting()["tag"]
    path = f"notebooks/{stem}.ipynb"
    blob = f"github.com/{repository}/blob/{tag}/{path}"
    links = {
        "Open in Colab": f"https://colab.research.google.com/{blob.replace('github.com', 'github')}",
        "Open in Kaggle": f"https://kaggle.com/kernels/welcome?src=https://{blob}",
        "Open in Binder": f"https://mybinder.org/v2/gh/{repository}/{tag}?urlpath=lab/tree/{path}",
    }
    return " · ".join(f"[{words}]({address})" for words, address in links.items())


def without_forms(code: str) -> str:
    return "\n".join(line.split(FORM)[0] for line in code.splitlines())


def written_cells(stem: str) -> list:
    from nbformat.v4 import new_code_cell, new_markdown_cell

    head = new_markdown_cell(badges(stem), metadata={"tags": ["badges"]})
    return [head, new_code_cell(bootstrap(), metadata=EXTRA_METADATA["bootstrap"])]


def bootstrap() -> str:
    """The set-up cell: a program that stands on its own, with this repository's address and tag put in."""
    text, known = BOOTSTRAP.read_text().strip(), setting()
    return text.replace("OWNER/NAME@TAG", f"{known['repository']}@{known['tag']}")


def pull(path: Path, tell=say):
    """Takes edits made in Jupyter back into the source; badges, set-up and the map are written again when rendering."""
    notebook, target = open_notebook(path), files.page_source(path.stem)
    kept = [cell for cell in notebook.cells if not {"badges", "bootstrap"} & set(tags(cell))]
    notebook.cells = kept[:1] + declaration(target) + kept[1:]
    notebook.cells = [emptied(cell) for cell in notebook.cells]
    notebook.metadata = {
        "jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "tags,-all"}
    }
    text = percent_format().writes(notebook, fmt="py:percent")
    ast.parse(text)
    target.write_text(text)
    tell(
        f"wrote {target.relative_to(files.ROOT)}; now run: clinic render {path.stem.split('_')[0]}"
    )


def declaration(source: Path) -> list:
    """The cell that no page shows, from the source that there is already."""
    cells = percent_notebook(source.read_text()).cells if source.exists() else []
    return [copy.deepcopy(cell) for cell in cells if "declaration" in tags(cell)]


def emptied(cell):
    """A cell as its author wrote it: the renderer's tags and the rendered table taken out again."""
    cell.metadata["tags"] = [tag for tag in tags(cell) if tag != "nbval-ignore-output"]
    if not cell.metadata["tags"]:
        del cell.metadata["tags"]
    if "map" in tags(cell):
        cell.source = cell.source.split("\n\n|")[0]
    if "parameters" in tags(cell):
        cell.source = without_forms(cell.source)
    return cell


def open_notebook(path: Path):
    """Reads a notebook; what is none is refused with a sentence."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        return notebook
    except FileNotFoundError:
        raise UserError(f"There is no file {str(path)!r}.") from None
    except Exception as error:  # nbformat raises its own, json's and jsonschema's kinds
        raise UserError(
            f"{str(path)!r} is not a notebook ({type(error).__name__}); give a .ipynb file."
        ) from None
