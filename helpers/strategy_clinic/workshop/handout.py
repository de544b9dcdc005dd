"""What a teacher hands out: the notebooks without their solutions, the package that they run on, and a folder to keep.

The folder has the project's layout, so that each notebook runs where it is: its set-up cell finds the package.
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
SOLUTIONS = "solutions"
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
with `%%program exercise`. It prints the wrong result, or raises. Change the program, leave its `print` as it is, and hand in the
folder `notebooks`.
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
        part = Path(temporary)
        copy_package(part)
        write_notebooks(part, [each.path for each in chosen])
        if for_nbgrader:
            nbgrader.convert(part)
        for path in sorted(part.iterdir()):
            path.rename(folder / path.name)
    notebooks = folder / (nbgrader.SOURCE if for_nbgrader else "notebooks")
    tell(f"{len(chosen)} notebooks in {notebooks}, their solutions in {folder / SOLUTIONS}")
    if for_nbgrader:
        tell(f"now read {folder / 'README.md'}")
        return
    tell(
        f"give away all of {folder} but {SOLUTIONS}; grade what comes back with: clinic grade FOLDER"
    )


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


def write_notebooks(part: Path, paths: list[Path]) -> None:
    names = {path.name for path in paths}
    for folder in ("notebooks", SOLUTIONS):
        (part / folder).mkdir()
    for path in (files.notebooks() / START, *paths):
        notebook = without_links(without_solution(sources.read_notebook(path)), names | {START})
        (part / "notebooks" / path.name).write_text(render.as_text(notebook))
    for path in paths:
        notebook = without_links(sources.read_notebook(path), names)
        (part / SOLUTIONS / path.name).write_text(render.as_text(notebook))


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
            cell.source = re.sub(r"\[([^\]]+)\]\(([^):/#]+\.ipynb)\)", words, cell.source)
    return notebook
