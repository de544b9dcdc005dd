"""From the names in a command to modes and their notebooks."""

import shlex
import shutil
from pathlib import Path

from ..base import files
from ..base.refusals import Refused
from ..base.reports import say
from . import catalog, sources

START = "00_start_here.ipynb"


def targets(names) -> list:
    """(mode, notebook) for every id, stem or path; what is no mode's notebook is refused."""
    known = [path for path in sources.sources() if catalog.read_mode(path)]
    ids = [path.stem.split("_")[0] for path in known]
    return [target(name, known) for name in (ids if list(names) == ["all"] else names)]


def target(name: str, known: list[Path]):
    """A copy of a notebook may have any name that begins with its mode's id."""
    given = Path(name) if name.endswith(".ipynb") else None
    if given:
        sources.open_notebook(given)
    source = sources.find(given.stem.split("_")[0] if given else name, known)
    path = given or sources.notebook_path(source)
    if not path.exists():
        identity = source.stem.split("_")[0]
        raise Refused(f"{path.name} has not been rendered yet; run: clinic render {identity}")
    return catalog.read_mode(source), path


def lay_out(folder: Path, tell=say):
    """Copies of all notebooks, to work in; what is there already, such as somebody's own work, stays as it is."""
    require_no_stranger(folder)
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


def require_no_stranger(folder: Path):
    """A notebook looks for modules beside itself first, so it would find a `helpers` there that is not ours."""
    for found in (folder / "helpers.py", folder / "helpers" / "__init__.py"):
        if found.exists() and not (folder / "helpers" / "base" / "files.py").exists():
            raise Refused(
                f"{str(found)!r} has the name of the clinic's package, and notebooks beside it would import it; "
                "give a folder of their own."
            )
