"""What a teacher hands out: a folder with the notebooks without their solutions and the package that they run on.

It has the project's layout, so that each notebook runs where it is: its set-up cell finds the package. The solutions are in a
folder beside it, so that whoever packs what is given away does not pack them.
"""

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from nbformat import NotebookNode

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..modes import registry
from ..rendering import render, sources
from ..rendering.mode_notebooks import START, mode_notebooks
from . import nbgrader

COPIED = ("hatch_build.py", "pyproject.toml", "requirements.lock")
# A page holds its exercise's solution; of each, the package gets only the declaration.
EXCLUDED = shutil.ignore_patterns(
    "__pycache__", ".*", "shipped", "page.py", "fixed.py", "solution.py", "pages"
)
GIVEN, SOLUTIONS = "for-participants", "solutions"
# Badges lead to the published notebooks, where the solutions are.
REMOVED_TAGS = {"solution", "badges"}
# Of no use to a reader who has the notebooks and not their sources.
REMOVED_SECTIONS = ("## Without a browser",)
REWORDED = {
    "The exercise starts red. The solution is folded away below it.": (
        "The exercise starts red, and it is green when the program prints what the line below it says."
    ),
}
README = """# Strategy Clinic: the notebooks of a workshop

```
python3 -m venv .venv                                       # Python 3.11 to 3.13
.venv/bin/pip install -c requirements.lock -e '.[notebooks]'
.venv/bin/python -m strategy_clinic.forkserver.kernelspec  # kernels that start in a fraction of a second
.venv/bin/jupyter lab notebooks
```

Begin with `notebooks/00_start_here.ipynb`. In every other notebook there is one exercise, the cell that begins
with `%%program exercise`. It prints the wrong result, or raises. Change the program, and leave its data and its `print` as they
are; prints that you add are not counted. It is graded with other data and other numbers of devices, too. Hand in the folder
`notebooks`.

Below an exercise that you have run, `session.grade_exercise()` says what a teacher will read, with a hint for the usual mistakes.
`session.grade_exercise(hint=True)` gives a hint for the start.
"""


def write_handout(
    folder: Path, names: list[str], for_nbgrader: bool = False, tell: Callable[[str], None] = say
) -> None:
    """Writes the whole handout or nothing; raises UserError for a folder that holds anything."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(
            f"{str(folder)!r} is not empty, and nothing in it will be overwritten; give a new folder."
        )
    chosen = mode_notebooks(names)
    with tempfile.TemporaryDirectory(dir=files.writable(folder), prefix=".") as temporary:
        for name in (GIVEN, SOLUTIONS):
            (Path(temporary) / name).mkdir()
        given = Path(temporary) / GIVEN
        copy_package(given)
        write_notebooks(given, Path(temporary) / SOLUTIONS, [each.path for each in chosen])
        if for_nbgrader:
            given = nbgrader.convert(given)
        for path in sorted(Path(temporary).iterdir()):
            path.rename(folder / path.name)
    tell(
        f"{len(chosen)} notebooks in {folder / given.name}, their solutions in {folder / SOLUTIONS}"
    )
    if for_nbgrader:
        tell(f"now read {folder / given.name / 'README.md'}")
        return
    tell(f"give away {folder / GIVEN}; grade what comes back with: clinic grade FOLDER")


def copy_package(part: Path) -> None:
    package = part / "helpers" / "strategy_clinic"
    shutil.copytree(files.package(), package, ignore=EXCLUDED)
    for mode in registry.modes():
        page = files.page_source(Path(mode.notebook).stem)
        declared = registry.DECLARATION + registry.declaration(page.read_text()).lstrip()
        (package / page.relative_to(files.package())).write_text(declared)
    for name in COPIED:
        shutil.copy(files.ROOT / name, part / name)
    (part / "README.md").write_text(README)


def write_notebooks(given: Path, solutions: Path, paths: list[Path]) -> None:
    names = {path.name for path in paths}
    (given / "notebooks").mkdir()
    for path in (files.notebooks() / START, *paths):
        notebook = without_links(without_solution(sources.read_notebook(path)), names | {START})
        (given / "notebooks" / path.name).write_text(render.as_text(notebook))
    for path in paths:
        notebook = without_links(sources.read_notebook(path), names)
        (solutions / path.name).write_text(render.as_text(notebook))


def without_solution(notebook: NotebookNode) -> NotebookNode:
    notebook.cells = [
        cell
        for cell in notebook.cells
        if not REMOVED_TAGS & set(sources.tags(cell))
        and not cell.source.startswith(REMOVED_SECTIONS)
    ]
    for cell in notebook.cells:
        for old, new in REWORDED.items():
            cell.source = cell.source.replace(old, new)
    return notebook


def without_links(notebook: NotebookNode, names: set[str]) -> NotebookNode:
    """Replaces each link to a notebook that is not in the same folder by its words."""

    def words(link: re.Match[str]) -> str:
        return link.group() if link.group(2) in names else link.group(1)

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]+)\]\(([^):#]+\.ipynb)\)", words, cell.source)
    return notebook
