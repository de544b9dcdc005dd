"""From the names in a command to modes and their notebooks."""

import shlex
import shutil
from pathlib import Path

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from . import catalog, sources

START = "00_start_here.ipynb"


def targets(names) -> list:
    """(mode, notebook) for every id, stem or path; what is no mode's notebook is refused."""
    known = [path for path in sources.sources() if catalog.read_mode(path)]
    ids = [sources.page_id(path) for path in known]
    return [target(name, known) for name in (ids if list(names) == ["all"] else names)]


def target(name: str, known: list[Path]):
    """A copy of a notebook may have any name that begins with its mode's id."""
    given = Path(name) if name.endswith(".ipynb") else None
    if given:
        sources.open_notebook(given)
    source = sources.find(given.stem.split("_")[0] if given else name, known)
    path = given or sources.notebook_path(source)
    if not path.exists():
        raise UserError(
            f"{path.name} has not been rendered yet; run: clinic render {sources.page_id(source)}"
        )
    return catalog.read_mode(source), path


def lay_out(folder: Path, tell=say):
    """Copies of all notebooks, to work in; what is there already, such as somebody's own work, stays as it is."""
    place = files.writable(folder)
    shipped = {place / path.name: path for path in sorted(files.notebooks().glob("*.ipynb"))}
    new = [copy for copy in shipped if not copy.exists()]
    for copy in new:
        shutil.copyfile(shipped[copy], copy)
    tell(f"{len(shipped)} notebooks in {folder}, {len(new)} of them new")
    changed = [copy.name for copy in shipped if copy.read_bytes() != shipped[copy].read_bytes()]
    if changed:
        tell(f"changed since they were copied, and left as they are: {', '.join(changed)}")
    tell(f"now run: jupyter lab {shlex.quote(str(folder / START))}")
