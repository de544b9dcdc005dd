"""Renders pages: a source becomes an executed notebook, byte for byte the same each time.

A person edits a mode's `page.py`, or a file in `pages/`. Rendering adds badges and set-up, runs every cell, and writes
`NAME.ipynb` and the picture of the README. It writes nothing if a run is not what the page declares.
"""

import copy
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from ..base import files
from ..base.display import reported, say
from ..base.errors import UserError
from ..modes import registry
from ..modes.documents import Document
from ..modes.failure_mode import FailureMode
from ..processes import notebook_job
from . import readme, sources

STEPS = ("setup", "broken", "fixed", "exercise", "solution")
WARNING = re.compile(r"^.+:\d+: (\w*Warning: .+)$", re.MULTILINE)  # as Python writes it


def render_all(names: Sequence[str], tell: Callable[[str], None] = say) -> None:
    """Renders pages one after the other, writes each as soon as it is done, and then what is made of all of them."""
    for source in sources.sources(names):
        path, text = sources.notebook_path(source), render(source)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        tell(f"rendered {files.page_name(source)}")
    readme.write_picture()
    write_texts(tell=tell)


def render(source: Path) -> str:
    """Runs a page and returns the text of its notebook; raises UserError if it is not as declared."""
    from papermill.exceptions import PapermillExecutionError

    name, mode = files.page_name(source), registry.read_mode(source)
    plain = sources.notebook_of(source)
    try:
        executed = executed_by_papermill(plain)
    except PapermillExecutionError as error:
        raise UserError(f"{name} was not rendered: {notebook_job.failure(error)}") from None
    require_no_warning(executed, name)
    notebook = with_outputs(plain, executed)
    if mode:
        require_all_steps(notebook, mode)
    if document := registry.read_document(source):
        require_all_claims(notebook, document, name)
    return as_text(notebook)


def executed_by_papermill(notebook: NotebookNode) -> NotebookNode:
    import nbformat
    import papermill

    with tempfile.TemporaryDirectory() as folder:
        path, executed = Path(folder) / "in.ipynb", Path(folder) / "out.ipynb"
        nbformat.write(notebook, path)
        papermill.execute_notebook(path, executed, **notebook_job.papermill_options(path.parent))
        result: NotebookNode = nbformat.read(executed, as_version=4)
        return result


def require_no_warning(executed: NotebookNode, name: str) -> None:
    """Raises UserError if a cell has warned: the file does not show it, and each reader would see it."""
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            warning = output.get("name") == "stderr" and WARNING.search(output.text)
            if warning:
                raise UserError(
                    f"{name}: cell {cell.execution_count} warns ({warning.group(1)}): "
                    "do without what it warns of, or filter that one warning in the notebook."
                )


def require_all_steps(notebook: NotebookNode, mode: FailureMode) -> None:
    """Raises UserError if a step is missing, no failure is shown, or the exercise is not red."""
    reports = reported(notebook)
    steps = {report["step"]: report for report in reports if "step" in report}
    missing = [step for step in STEPS if step not in steps]
    if missing:
        raise UserError(
            f"{mode.name} is not whole: no cell reports {', '.join(missing)}. "
            f"See modes/{mode.id}_{mode.slug}/page.py"
        )
    if steps["setup"]["expects"] == "works":
        raise UserError(
            f"{mode.name} shows no failure under its own parameters: choose others in {mode.notebook}."
        )
    if steps["exercise"]["colour"] != "red":
        raise UserError(
            f"{mode.name}: the exercise is green before anybody has worked on it. See {mode.notebook}"
        )


def require_all_claims(notebook: NotebookNode, document: Document, name: str) -> None:
    """Raises UserError if a claim that is declared has not been judged."""
    judged = {report["claim"]["id"] for report in reported(notebook) if "claim" in report}
    missing = sorted({claim.id for claim in document.claims} - judged)
    if missing:
        raise UserError(f"{name} was not rendered: no cell of it tests {', '.join(missing)}.")


def with_outputs(plain: NotebookNode, executed: NotebookNode) -> NotebookNode:
    """Gives the plain notebook the outputs of the executed one, without what differs from run to run."""
    for cell, ran in zip(code_cells(plain), code_cells(executed), strict=True):
        cell.execution_count = ran.execution_count
        cell.outputs = stable_outputs(ran.outputs)
    return plain


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stable_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Joins streams, drops stderr, and removes references to widgets, which no file holds."""
    stable: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if output.output_type == "stream" and stable and stable[-1].output_type == "stream":
            stable[-1].text += output.text
            continue
        if "data" in output:
            output.data.pop("application/vnd.jupyter.widget-view+json", None)
        stable.append(output)
    return stable


def as_text(notebook: NotebookNode) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_texts(names: Sequence[str] = (), tell: Callable[[str], None] = say) -> None:
    """Writes text, and the set-up cell, which prints nothing, into stored notebooks again; no cell is run.

    Leaves a notebook as it is if other code differs from its source, which has to be run.
    """
    for source in sources.sources(names):
        path, plain = sources.notebook_path(source), sources.notebook_of(source)
        if not path.exists():
            continue
        text = path.read_text()
        stored = sources.parsed_notebook(text)
        if code_to_run(stored) == code_to_run(plain):
            written = as_text(with_outputs(plain, copy.deepcopy(stored)))
            if written != text:
                path.write_text(written)
                tell(f"wrote the text of {files.page_name(source)}")


def code_to_run(notebook: NotebookNode) -> list[str]:
    """Returns what is typed in each cell, but not the set-up cell, on which no output depends."""
    return [
        "" if "bootstrap" in sources.tags(cell) else sources.typed(cell.source)
        for cell in code_cells(notebook)
    ]


# Whether what is stored is up to date


def stale(names: Sequence[str] = ()) -> Iterator[str]:
    """Yields a sentence for each stored file that is not what its source says; runs nothing."""
    pages = sources.sources(names)
    if not names:
        yield from without_source(pages)
        yield from readme.problems()
    for source in pages:
        yield from stored_problems(source)


def without_source(pages: Iterable[Path]) -> list[str]:
    known = set(map(sources.notebook_path, pages))
    return [
        f"{path.relative_to(files.ROOT)} has no source: delete it, or `clinic render --pull` it."
        for path in files.stored_notebooks()
        if path not in known
    ]


def stored_problems(source: Path) -> list[str]:
    path = sources.notebook_path(source)
    name = path.name
    command = f"run: clinic render {files.page_id(source)}"
    if not path.exists():
        return [f"{name} is missing; {command}"]
    stored, problems = sources.stored_notebook(path), []
    if shape(stored) != shape(sources.notebook_of(source)):
        problems.append(f"{name} is not what its source says; {command}")
    return problems + [
        f"{name}: cell {cell.id} has not been run, or lost its output; {command}"
        for cell in stored.cells
        if cell.cell_type == "code" and not is_run(cell)
    ]


def shape(notebook: NotebookNode) -> list[Any]:
    """Returns all of a notebook that its source decides."""
    return [
        (cell.cell_type, cell.id, cell.source, dict(cell.metadata)) for cell in notebook.cells
    ] + [notebook.metadata]


def is_run(cell: NotebookNode) -> bool:
    """Returns whether a cell was run and has its output; in a cell without them, nbval would compare nothing."""
    shows = r"^(session\.(?!setup)\w+\(|session = clinic|document\.(judges|verdicts)\(|figures\.|print\(|%%program )"
    code = re.sub(r'(?s)""".*?"""', "", cell.source)  # without the texts of programs
    has_output = bool(cell.outputs) or not re.search(shows, code, re.MULTILINE)
    return cell.execution_count is not None and has_output
