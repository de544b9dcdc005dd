"""From a notebook's source to its executed form: one way, byte for byte the same each time.

A person edits `notebooks/NAME.py`. Rendering adds badges and set-up, runs every cell, and writes `NAME.ipynb`,
the catalog and the table in the README; it writes nothing at all if the notebook does not keep its word.
"""

import ast
import hashlib
import json
import re
import tempfile
import tomllib
from pathlib import Path

from . import catalog
from .modes import MIME, FailureMode
from .refusals import Refused

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
EXTRA_METADATA = {
    "solution": {"jupyter": {"source_hidden": True}, "cellView": "form"},
    "bootstrap": {"tags": ["bootstrap"], "jupyter": {"source_hidden": True}, "cellView": "form"},
    "panel": {"tags": ["nbval-ignore-output", "panel"]},
    "machine": {"tags": ["machine", "nbval-ignore-output"]},
}
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
PAPERMILL = {
    "progress_bar": False,
    "store_widget_state": False,
    "cwd": str(NOTEBOOKS),
    "extra_arguments": [
        "--log-level=ERROR"
    ],  # ipykernel warns about unencrypted sockets, which stay on this machine
}
STEPS = ("setup", "reproduced", "fixed", "exercise", "solution")
BOOTSTRAP = """# Set-up: finds the helpers beside this notebook, or fetches them on Colab and Kaggle.
import os, subprocess, sys
from pathlib import Path

address, tag = "https://github.com/{repository}", "{tag}"
folder = Path("strategy-clinic").resolve()
if "COLAB_RELEASE_TAG" in os.environ or "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
    if not folder.exists():
        clone = ["git", "clone", "-q", "--depth=1", "-b", tag, address, str(folder)]
        subprocess.run(clone, check=True)
    sys.path.insert(0, str(folder))
else:
    above = [Path.cwd().resolve(), *Path.cwd().resolve().parents]
    sys.path[:0] = [str(each) for each in above if (each / "helpers" / "modes.py").exists()]"""


def say(line: str):
    """Progress that is seen at once, also through a pipe."""
    print(line, flush=True)


# Sources


def sources(names=()) -> list[Path]:
    """The notebooks' sources, all or those named by id, stem or path; an unknown name is refused."""
    every = sorted(NOTEBOOKS.glob("*.py"))
    return [find(name, every) for name in names] or every


def find(name: str, every: list[Path]) -> Path:
    stem = Path(name).stem
    for path in every:
        if stem in (path.stem, path.stem.split("_")[0]):
            return path
    raise Refused(
        f"There is no notebook {name!r}; known: {', '.join(path.stem.split('_')[0] for path in every)}."
    )


def read(source: Path):
    """The notebook that a source describes, with the cells that nobody types, and without outputs."""
    notebook = percent_format().read(source, fmt="py:percent")
    cells = [filled(cell) for cell in notebook.cells]
    notebook.cells = cells[:1] + written_cells(source.stem) + cells[1:]
    notebook.metadata = KERNEL
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = metadata(cell)
    for cell, name in zip(notebook.cells, cell_ids(notebook.cells)):
        cell["id"] = name
    return notebook


def percent_format():
    """jupytext; it adds buttons to JupyterLab, so only those who write notebooks install it."""
    try:
        import jupytext
    except ImportError:
        raise Refused(
            "Rendering needs jupytext, which is not installed; run: pip install -e '.[test]'"
        ) from None
    return jupytext


def filled(cell):
    """The one cell whose text comes from the catalog: the map of modes."""
    if "map" in tags(cell):
        cell.source = f"{cell.source}\n\n{catalog.markdown(link='')}"
    return cell


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


def setting() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["clinic"]


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


def written_cells(stem: str) -> list:
    from nbformat.v4 import new_code_cell, new_markdown_cell

    head = new_markdown_cell(badges(stem), metadata={"tags": ["badges"]})
    return [head, new_code_cell(BOOTSTRAP.format(**setting()), metadata={"tags": ["bootstrap"]})]


# Execution


def execute(notebook):
    """Runs a notebook with papermill, as any user of papermill would, and returns it with its outputs."""
    import nbformat
    import papermill

    with tempfile.TemporaryDirectory() as folder:
        written, executed = Path(folder) / "in.ipynb", Path(folder) / "out.ipynb"
        nbformat.write(notebook, written)
        papermill.execute_notebook(written, executed, **PAPERMILL)
        return nbformat.read(executed, as_version=4)


def stable(executed, plain):
    """The plain notebook with the executed one's outputs, less all that differs from run to run."""
    for cell, ran in zip(plain.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.execution_count = ran.execution_count
            cell.outputs = settled(ran.outputs)
    return plain


def settled(outputs: list) -> list:
    """Streams joined, stderr dropped, and the reference to a widget that lives in no file taken out."""
    kept = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if output.output_type == "stream" and kept and kept[-1].output_type == "stream":
            kept[-1].text += output.text
            continue
        if "data" in output:
            output.data.pop("application/vnd.jupyter.widget-view+json", None)
        kept.append(output)
    return kept


def reports(notebook) -> list[dict]:
    """What the steps of a notebook reported, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[MIME] for output in outputs if MIME in output.get("data", {})]


def require_whole(notebook, mode: FailureMode):
    """Refuses a rendering in which a step is missing, the failure is not shown, or the exercise is not red."""
    found = {report["step"]: report for report in reports(notebook) if "step" in report}
    missing = [step for step in STEPS if step not in found]
    if missing:
        raise Refused(
            f"{mode.name} is not whole: no cell reports {', '.join(missing)}. See notebooks/{mode.id}_{mode.slug}.py"
        )
    if found["setup"]["expects"] == "works":
        raise Refused(
            f"{mode.name} shows no failure under its own parameters: choose others in {mode.notebook}."
        )
    judged = {report["claim"]["id"] for report in reports(notebook) if "claim" in report}
    if judged != {claim.id for claim in mode.claims}:
        raise Refused(
            f"{mode.name} declares claims that no run tests; see the cell with MODE.judges in {mode.notebook}."
        )
    if found["exercise"]["colour"] != "red":
        raise Refused(
            f"{mode.name}: the exercise is green before anybody has worked on it. See {mode.notebook}"
        )


def render(source: Path) -> str:
    """Runs one source and returns the text of its notebook; raises in words if it does not keep its word."""
    from papermill.exceptions import PapermillExecutionError

    plain = read(source)
    try:
        notebook = stable(execute(plain), plain)
    except PapermillExecutionError as error:
        raise Refused(f"{source.name} was not rendered: {said(error)}") from None
    mode = catalog.read_mode(source)
    if mode:
        require_whole(notebook, mode)
    return text_of(notebook)


def said(error) -> str:
    """The sentence of a failed cell, and where it stands unless it is one of ours."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue)).strip()
    ours = error.ename in ("Refused", "Unavailable", "Disagreement")
    return words if ours else f"cell {error.exec_count} raised {error.ename}: {words}"


def text_of(notebook) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def render_all(names, tell=say):
    """Renders notebooks one after the other; each is written as soon as it is done, then what follows from all."""
    for source in sources(names):
        text = render(source)
        source.with_suffix(".ipynb").write_text(text)
        tell(f"rendered {source.stem}")
    catalog.write()


# Drift


def check(names=()) -> list[str]:
    """One sentence for each stored file that is not what its source says; runs nothing."""
    problems = [problem for source in sources(names) for problem in stored_problems(source)]
    if not names:
        stems = {source.stem for source in sources()}
        left = [path.name for path in sorted(NOTEBOOKS.glob("*.ipynb")) if path.stem not in stems]
        problems += [
            f"notebooks/{name} has no source: delete it, or `clinic render --pull` it."
            for name in left
        ]
        problems += catalog.drift()
    return problems


def stored_problems(source: Path) -> list[str]:
    import nbformat

    command = f"run: clinic render {source.stem.split('_')[0]}"
    if not source.with_suffix(".ipynb").exists():
        return [f"{source.stem}.ipynb is missing; {command}"]
    stored = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    problems = (
        [f"{source.stem}.ipynb is not what its source says; {command}"]
        if shape(stored) != shape(read(source))
        else []
    )
    empty = [cell.id for cell in stored.cells if cell.cell_type == "code" and not is_run(cell)]
    return problems + [
        f"{source.stem}.ipynb: cell {name} has not been run, or lost its output; {command}"
        for name in empty
    ]


def shape(notebook) -> list:
    """All of a notebook that its source decides."""
    return [
        (cell.cell_type, cell.id, cell.source, dict(cell.metadata)) for cell in notebook.cells
    ] + [notebook.metadata]


def is_run(cell) -> bool:
    """nbval compares nothing in a cell that has no execution count, or whose outputs were stripped."""
    speaks = re.search(
        r"^(MODE\.\w+\(|with MODE|figures\.|print\(|setup = MODE|\w+ = panel\()", cell.source, re.M
    )
    return cell.execution_count is not None and (bool(cell.outputs) or not speaks)


def pull(path: Path, tell=say):
    """Takes edits made in Jupyter back into the source; badges, set-up and the map are written again when rendering."""
    notebook = open_notebook(path)
    notebook.cells = [
        emptied(cell) for cell in notebook.cells if not {"badges", "bootstrap"} & set(tags(cell))
    ]
    notebook.metadata = {
        "jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "tags,-all"}
    }
    text = percent_format().writes(notebook, fmt="py:percent")
    ast.parse(text)
    target = NOTEBOOKS / f"{path.stem}.py"
    target.write_text(text)
    tell(f"wrote {target.name}; now run: clinic render {path.stem.split('_')[0]}")


def emptied(cell):
    """A cell as its author wrote it: the renderer's tags and the rendered table taken out again."""
    cell.metadata["tags"] = [tag for tag in tags(cell) if tag != "nbval-ignore-output"]
    if not cell.metadata["tags"]:
        del cell.metadata["tags"]
    if "map" in tags(cell):
        cell.source = cell.source.split("\n\n|")[0]
    return cell


def open_notebook(path: Path):
    """Reads a notebook; what is none is refused with a sentence."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        return notebook
    except FileNotFoundError:
        raise Refused(f"There is no file {str(path)!r}.") from None
    except Exception as error:  # nbformat raises its own, json's and jsonschema's kinds
        raise Refused(
            f"{str(path)!r} is not a notebook ({type(error).__name__}); give a .ipynb file."
        ) from None
