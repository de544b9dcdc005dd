"""A handout as the source of an assignment of nbgrader, which is not needed to write it.

nbgrader would replace the program of a cell that it calls a solution by a line of its own, so the exercise is an ordinary cell.
The cell below it is graded. The cells that decide the setup are locked: nbgrader restores them before it grades.

While nbgrader grades, only the cells up to `clinic.open`, the exercise and the graded cell run: figures and tables would take
minutes for each participant, and the cells of a participant could change what the graded one says.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from ..rendering import render, sources
from .exercises import EXERCISE

ASSIGNMENT = "strategy_clinic"
COURSE = "course"
SOURCE = Path("source") / ASSIGNMENT
SCHEMA = 3  # of nbgrader's metadata, since nbgrader 0.6
LOCKED_TAGS = {"bootstrap", "parameters", "open"}
GRADED = """# Graded by nbgrader: one point if the exercise above is green. It is run again without a network.
session.grade_exercise()"""
SECONDS = 600  # for one cell; nbgrader's own limit of 30 is too short for several runs
CONFIG = f"""c = get_config()  # noqa: F821 - nbgrader defines it
c.Execute.timeout = {SECONDS}
"""
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

While it grades, nbgrader runs the cells up to `clinic.open`, the exercise and the graded cell of each notebook, and no others:
about 8 seconds for a notebook. `nbgrader_config.py` gives a cell enough time for that.

What comes before `clinic.open` runs with your rights: grade people whom you do not know in a container.
"""


def convert(handout: Path) -> Path:
    """Makes a course of a handout: its notebooks with nbgrader's metadata and the graded cells, where nbgrader expects them.

    Returns the folder of the course, which has another name.
    """
    course = handout.rename(handout.with_name(COURSE))
    (course / SOURCE).parent.mkdir()
    (course / "notebooks").rename(course / SOURCE)
    for path in sorted((course / SOURCE).glob("*.ipynb")):
        notebook = sources.read_notebook(path)
        path.write_text(render.as_text(with_grades(notebook)))
    (course / "README.md").write_text(README)
    (course / "nbgrader_config.py").write_text(CONFIG)
    return course


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


# While nbgrader grades


def prepare(shell: Any, keep: Callable[[str, str], None], stage: str) -> None:
    """Leaves out, from now on, the cells that nothing is graded by, if nbgrader is at the stage of grading.

    The exercise is only kept, since the graded cell runs it.
    """
    if stage == "autograde":
        shell.register_magic_function(keep, "cell", "program")
        shell.input_transformers_cleanup.append(only_graded)


def only_graded(lines: list[str]) -> list[str]:
    """Returns a cell as it is, or an empty one; the graded cell is as it was handed out, since it is locked."""
    text = "".join(lines)
    is_graded = text.strip() == GRADED or text.startswith(EXERCISE)
    return lines if is_graded else ["pass\n"]
