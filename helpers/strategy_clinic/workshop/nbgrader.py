"""A handout as the source of an assignment of nbgrader, which is not needed to write it.

nbgrader would replace the program of a cell that it calls a solution by a line of its own, so the exercise is an ordinary cell.
The cell below it is graded. The cells that decide the setup are locked: nbgrader restores them before it grades.
"""

from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from ..rendering import render, sources

ASSIGNMENT = "strategy_clinic"
SOURCE = Path("source") / ASSIGNMENT
SCHEMA = 3  # of nbgrader's metadata, since nbgrader 0.6
LOCKED_TAGS = {"bootstrap", "parameters", "open"}
GRADED = """# Graded by nbgrader: one point if the exercise above is green. It is run again without a network.
session.grade_exercise()"""
README = f"""# Strategy Clinic: an assignment for nbgrader

This folder is a course of nbgrader with one assignment, and with the package that its notebooks need.

```
pip install -c requirements.lock -e '.[notebooks]' nbgrader    # where you grade
nbgrader generate_assignment {ASSIGNMENT}                 # writes release/
nbgrader autograde {ASSIGNMENT}                           # grades submitted/STUDENT/{ASSIGNMENT}/
nbgrader export                                                # writes grades.csv
```

For a course of your own, copy `source/{ASSIGNMENT}` into its folder `source`. A machine where this package is neither installed
nor in a folder above the notebooks needs its wheel: `clinic wheel FOLDER --of THIS_FOLDER`.

nbgrader runs what participants hand in with your rights: grade people whom you do not know in a container.
"""


def convert(handout: Path) -> None:
    """Moves the notebooks of a handout to where nbgrader expects them, and adds its metadata and the graded cells."""
    (handout / SOURCE).parent.mkdir()
    (handout / "notebooks").rename(handout / SOURCE)
    for path in sorted((handout / SOURCE).glob("*.ipynb")):
        notebook = sources.read_notebook(path)
        path.write_text(render.as_text(with_grades(notebook)))
    (handout / "README.md").write_text(README)


def with_grades(notebook: NotebookNode) -> NotebookNode:
    """Returns the notebook with a graded cell below its exercise, if it has one, and locked cells."""
    from nbformat.v4 import new_code_cell

    cells = []
    for cell in notebook.cells:
        tags = set(sources.tags(cell))
        if locked := tags & LOCKED_TAGS:
            cell.metadata["nbgrader"] = metadata(*locked)
        cells.append(cell)
        if "exercise" in tags:
            graded = metadata("exercise", grade=True, points=1)
            cells.append(new_code_cell(GRADED, id="graded", metadata={"nbgrader": graded}))
    notebook.cells = cells
    return notebook


def metadata(identity: str, **values: Any) -> dict[str, Any]:
    """Returns nbgrader's metadata of a cell that participants cannot change."""
    fields = {"grade": False, "solution": False, "task": False, "locked": True}
    return fields | {"grade_id": identity, "schema_version": SCHEMA} | values
