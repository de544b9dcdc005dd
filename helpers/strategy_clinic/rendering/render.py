"""From a notebook's source to its executed form: one way, byte for byte the same each time.

A person edits a mode's `page.py`, or a file in `pages/`. Rendering adds badges and set-up, runs every cell, and writes
`NAME.ipynb`, the catalog and the table in the README; it writes nothing at all if the notebook does not keep its word.
"""

import copy
import json
import re
import tempfile
from dataclasses import asdict
from pathlib import Path

from ..base import files
from ..base.display import reported, say
from ..base.errors import UserError
from ..modes.failure_mode import FailureMode
from ..processes import notebook_job
from . import catalog, sources

STEPS = ("setup", "reproduced", "fixed", "exercise", "solution")
WARNING = re.compile(
    r"^.+:\d+: (\w*Warning: .+)$", re.MULTILINE
)  # as Python's module warnings says it


def executed_by_papermill(notebook):
    """Runs a notebook with papermill, as any user of papermill would, and returns it with its outputs."""
    import nbformat
    import papermill

    with tempfile.TemporaryDirectory() as folder:
        written, executed = Path(folder) / "in.ipynb", Path(folder) / "out.ipynb"
        nbformat.write(notebook, written)
        papermill.execute_notebook(
            written, executed, **notebook_job.papermill_options(written.parent)
        )
        return nbformat.read(executed, as_version=4)


def stable(executed, plain):
    """The plain notebook with the executed one's outputs, less all that differs from run to run."""
    for cell, ran in zip(plain.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.execution_count = ran.execution_count
            cell.outputs = settled(ran.outputs)
    return plain


def settled(outputs: list) -> list:
    """Joins streams, drops stderr, and takes out references to widgets, which no file holds."""
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


def require_quiet(executed, source: Path):
    """Refuses a rendering in which a cell has warned: the file would not show it, and each reader would see it."""
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            warned = output.get("name") == "stderr" and WARNING.search(output.text)
            if warned:
                raise UserError(
                    f"{files.page_name(source)}: cell {cell.execution_count} warns ({warned.group(1)}): "
                    "do without what it warns of, or filter that one warning in the notebook."
                )


def require_whole(notebook, mode: FailureMode):
    """Refuses a rendering in which a step is missing, the failure is not shown, or the exercise is not red."""
    found = {report["step"]: report for report in reported(notebook) if "step" in report}
    missing = [step for step in STEPS if step not in found]
    if missing:
        raise UserError(
            f"{mode.name} is not whole: no cell reports {', '.join(missing)}. See modes/{mode.id}_{mode.slug}/page.py"
        )
    if found["setup"]["expects"] == "works":
        raise UserError(
            f"{mode.name} shows no failure under its own parameters: choose others in {mode.notebook}."
        )
    judged = {report["claim"]["id"] for report in reported(notebook) if "claim" in report}
    if judged != {claim.id for claim in mode.claims}:
        raise UserError(
            f"{mode.name} declares claims that no run tests; see the cell with clinic.judges in {mode.notebook}."
        )
    if found["exercise"]["colour"] != "red":
        raise UserError(
            f"{mode.name}: the exercise is green before anybody has worked on it. See {mode.notebook}"
        )


def render(source: Path) -> str:
    """Runs one source and returns the text of its notebook; raises in words if it does not keep its word."""
    from papermill.exceptions import PapermillExecutionError

    plain, mode = sources.notebook_of(source), catalog.read_mode(source)
    try:
        executed = executed_by_papermill(declaring(mode, plain))
    except PapermillExecutionError as error:
        raise UserError(
            f"{files.page_name(source)} was not rendered: {notebook_job.failure(error)}"
        ) from None
    require_quiet(executed, source)
    notebook = stable(executed, plain)
    if mode:
        require_whole(notebook, mode)
    return as_text(notebook)


def declaring(mode: FailureMode | None, plain):
    """The notebook with a set-up that knows the declaration in its source, which may be newer than the catalog."""
    notebook = copy.deepcopy(plain)
    if mode:
        setup = next(cell for cell in notebook.cells if "bootstrap" in sources.tags(cell))
        setup.source += (
            "\nfrom strategy_clinic.modes import failure_mode\n\n"
            f"failure_mode.BEING_RENDERED[{mode.id!r}] = {asdict(mode)!r}"
        )
    return notebook


def as_text(notebook) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def render_all(names, tell=say):
    """Renders notebooks one after the other; each is written as soon as it is done, then what follows from all."""
    for source in sources.sources(names):
        text = render(source)
        sources.notebook_path(source).write_text(text)
        tell(f"rendered {files.page_name(source)}")
    catalog.write_catalog()
    for source in sources.sources():
        redraw_map(source)


def redraw_map(source: Path):
    """Writes the map of modes anew where a notebook shows it. The map is text, so nothing is run."""
    import nbformat

    path, plain = sources.notebook_path(source), sources.notebook_of(source)
    if path.exists() and any("map" in sources.tags(cell) for cell in plain.cells):
        stored = nbformat.read(path, as_version=4)
        if all_but_text(stored) == all_but_text(plain):
            path.write_text(as_text(stable(stored, plain)))


def all_but_text(notebook) -> list:
    return [(cell.cell_type, cell.cell_type == "code" and cell.source) for cell in notebook.cells]


# Drift


def stale(names=()) -> list[str]:
    """One sentence for each stored file that is not what its source says; runs nothing."""
    problems = [problem for source in sources.sources(names) for problem in stored_problems(source)]
    if not names:
        stems = {files.page_name(source) for source in sources.sources()}
        left = [
            path.name
            for path in sorted(files.notebooks().glob("*.ipynb"))
            if path.stem not in stems
        ]
        problems += [
            f"notebooks/{name} has no source: delete it, or `clinic render --pull` it."
            for name in left
        ]
        problems += catalog.drift()
    return problems


def stored_problems(source: Path) -> list[str]:
    command = f"run: clinic render {sources.page_id(source)}"
    if not sources.notebook_path(source).exists():
        return [f"{files.page_name(source)}.ipynb is missing; {command}"]
    stored = sources.stored_notebook(sources.notebook_path(source))
    problems = (
        [f"{files.page_name(source)}.ipynb is not what its source says; {command}"]
        if shape(stored) != shape(sources.notebook_of(source))
        else []
    )
    empty = [cell.id for cell in stored.cells if cell.cell_type == "code" and not is_run(cell)]
    return problems + [
        f"{files.page_name(source)}.ipynb: cell {name} has not been run, or lost its output; {command}"
        for name in empty
    ]


def shape(notebook) -> list:
    """All of a notebook that its source decides."""
    return [
        (cell.cell_type, cell.id, cell.source, dict(cell.metadata)) for cell in notebook.cells
    ] + [notebook.metadata]


def is_run(cell) -> bool:
    """Whether a cell was run and has its output. In a cell without them, nbval would compare nothing."""
    speaks = re.search(
        r"^(session\.(?!setup)\w+\(|session = |figures\.|print\()", cell.source, re.M
    )
    return cell.execution_count is not None and (bool(cell.outputs) or not speaks)
