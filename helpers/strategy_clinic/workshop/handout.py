"""What a teacher hands out: the notebooks without their solutions, the package they run on, and a folder to keep.

The folder is laid out as the project is, so every notebook runs from where it lies: its set-up cell finds the package.
"""

import re
import shutil
import tempfile
from pathlib import Path

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..rendering import render, sources, targets
from ..rendering.targets import START

COPIED = ("pyproject.toml", "requirements.lock")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "shipped", "page.py", "pages")
KEPT = "solutions"
# Badges lead to the published notebooks, where the solutions are.
TAKEN_OUT = {"solution", "badges"}
# Of no use to who has the notebooks and not their sources.
SECTIONS_TAKEN_OUT = ("## Without a browser",)
REWORDED = {
    "The exercise starts red. The solution is folded away below it.": (
        "The exercise starts red, and it is green when its proof holds. `session.exercise` tells you which."
    ),
}
LETTER = """# Strategy Clinic: the notebooks of a workshop

```
python3 -m venv .venv                                       # Python 3.11 to 3.13
.venv/bin/pip install -c requirements.lock -e .
.venv/bin/python -m strategy_clinic.processes.kernels               # kernels that start in a fraction of a second
.venv/bin/jupyter lab notebooks
```

Begin with `notebooks/00_start_here.ipynb`. In every other notebook there is one exercise, between the headings *Exercise* and
*See also*. It starts red. Write between those headings, leave its `return` as it is, and hand in the folder `notebooks`.
"""


def write_handout(folder: Path, names: list[str], tell=say):
    """Everything or nothing; a folder that holds anything is left as it is."""
    require_new(folder)
    chosen = targets.targets(names)
    with tempfile.TemporaryDirectory(dir=files.writable(folder), prefix=".") as part:
        fill(Path(part), [path for _, path in chosen])
        for each in sorted(Path(part).iterdir()):
            each.rename(folder / each.name)
    tell(f"{len(chosen)} notebooks in {folder / 'notebooks'}, their solutions in {folder / KEPT}")
    tell(f"give away all of {folder} but {KEPT}; grade what comes back with: clinic grade FOLDER")


def require_new(folder: Path):
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(
            f"{str(folder)!r} is not empty, and nothing in it will be overwritten; give a new folder."
        )


def fill(part: Path, paths: list[Path]):
    """The project's layout, as far as notebooks need it."""
    for name in ("notebooks", KEPT):
        (part / name).mkdir()
    shutil.copytree(files.package(), part / "helpers" / "strategy_clinic", ignore=LEFT_OUT)
    for name in COPIED:
        shutil.copy(files.ROOT / name, part / name)
    (part / "README.md").write_text(LETTER)
    start = files.notebooks() / START
    names = {path.name for path in (start, *paths)}
    for path in (start, *paths):
        put(part / "notebooks" / path.name, handed_out(sources.open_notebook(path), names))
    for path in paths:
        put(part / KEPT / path.name, unlinked(sources.open_notebook(path), names - {START}))


def put(path: Path, notebook):
    path.write_text(render.as_text(notebook))


def handed_out(notebook, names: set[str]):
    """As a participant gets it: nothing of a solution, and no link to what was not handed out."""
    notebook.cells = [cell for cell in notebook.cells if not is_taken_out(cell)]
    for cell in notebook.cells:
        for old, new in REWORDED.items():
            cell.source = cell.source.replace(old, new)
    return unlinked(notebook, names)


def is_taken_out(cell) -> bool:
    tagged = bool(TAKEN_OUT & set(sources.tags(cell)))
    return tagged or cell.source.startswith(SECTIONS_TAKEN_OUT)


def unlinked(notebook, names: set[str]):
    """A link to a notebook that is not beside this one keeps its words only."""

    def words(link: re.Match) -> str:
        return link.group() if link.group(2) in names else link.group(1)

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]+)\]\(([^):/#]+\.ipynb)\)", words, cell.source)
    return notebook
