"""The modes that a command names, each with its notebook, and copies of all notebooks to work in."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..modes import registry
from ..modes.failure_mode import FailureMode
from . import sources

START = "00_start_here.ipynb"


@dataclass(frozen=True)
class ModeNotebook:
    """A mode and the file of its notebook, which may be somebody's copy."""

    mode: FailureMode
    path: Path

    @cached_property
    def notebook(self) -> Any:
        """The notebook as it was when it was first asked for; it is never changed."""
        return sources.stored_notebook(self.path)


def mode_notebooks(names: Iterable[str]) -> list[ModeNotebook]:
    """Returns the modes with these ids, stems or paths; raises UserError for a notebook of no mode."""
    modes = {path: mode for path in sources.sources() if (mode := registry.read_mode(path))}
    names = list(names)
    if names == ["all"]:
        names = [files.page_id(path) for path in modes]
    return [mode_notebook(name, modes) for name in names]


def mode_notebook(name: str, modes: dict[Path, FailureMode]) -> ModeNotebook:
    """Returns the mode of this name; a copy of a notebook may have any name that begins with its mode's id."""
    copy = Path(name) if name.endswith(".ipynb") else None
    if copy:
        sources.read_notebook(copy)
    source = sources.find_source(copy.stem.split("_")[0] if copy else name, list(modes))
    path = copy or sources.notebook_path(source)
    if not path.exists():
        raise UserError(
            f"{path.name} has not been rendered yet; run: clinic render {files.page_id(source)}"
        )
    return ModeNotebook(modes[source], path)


def copy_notebooks(folder: Path, tell: Callable[[str], None] = say) -> None:
    """Copies all notebooks into a folder; a file that is there already, such as a reader's work, stays as it is."""
    place = files.writable(folder)
    shipped = {
        place / path.relative_to(files.notebooks()): path for path in files.stored_notebooks()
    }
    new = [copy for copy in shipped if not copy.exists()]
    for copy in new:
        files.writable(copy.parent)
        shutil.copyfile(shipped[copy], copy)
    tell(f"{len(shipped)} notebooks in {folder}, {len(new)} of them new")
    other = [copy.name for copy in shipped if has_other_text(copy, shipped[copy])]
    if other:
        tell(
            f"edited, or of another version, and left as they are (delete one to get it again): {', '.join(other)}"
        )


def has_other_text(copy: Path, shipped: Path) -> bool:
    """Returns whether a copy has other cells than its notebook; one that was only run has other outputs."""
    if copy.read_bytes() == shipped.read_bytes():
        return False
    try:
        return text_of(copy) != text_of(shipped)
    except UserError:  # it is no notebook any more
        return True


def text_of(path: Path) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in sources.read_notebook(path).cells]
