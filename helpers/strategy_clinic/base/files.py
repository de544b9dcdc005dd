"""Where things lie, and files that are written whole. Paths are asked for when they are needed, never kept."""

import json
import os
import re
from pathlib import Path

from .errors import UserError

PACKAGE = Path(__file__).parents[1]
SHIPPED = (
    PACKAGE / "shipped"
)  # in a wheel: the files of the repository that lie outside the package
ROOT = SHIPPED if SHIPPED.exists() else PACKAGE.parents[1]


def is_clone() -> bool:
    """Whether this is the repository; a wheel has copies of it, which the next version replaces."""
    return ROOT != SHIPPED


def package() -> Path:
    """Returns the folder of the package: below ROOT in a repository, which tests replace by a copy."""
    return ROOT / "helpers" / "strategy_clinic" if is_clone() else PACKAGE


def modules_in(folder: str) -> list[str]:
    """Returns the modules of a folder of the package, such as `examiner/rules`."""
    return sorted(f"{folder}/{path.name}" for path in (PACKAGE / folder).glob("*.py"))


def notebooks() -> Path:
    return ROOT / "notebooks"


def page_sources() -> list[Path]:
    """Returns the source of every notebook, in the order of the notebooks' names."""
    found = [*(package() / "pages").glob("*.py"), *(package() / "modes").glob("fm*/page.py")]
    return sorted(found, key=page_name)


def page_name(source: Path) -> str:
    """Returns the name that a page's source and its notebook share: of a mode, that of its folder."""
    return source.parent.name if source.name == "page.py" else source.stem


def page_source(name: str) -> Path:
    """Returns where the source of the notebook of this name is, or would be."""
    folder = package() / "modes" / name
    return folder / "page.py" if re.match(r"fm\d\d_", name) else package() / "pages" / f"{name}.py"


def catalog_file() -> Path:
    return package() / "modes" / "catalog.json"


def read_catalog() -> dict:
    """What every mode declares, by its id, as plain values."""
    return json.loads(catalog_file().read_text())


def write_whole(path: Path, text: str):
    """A file is there with all of its text, or as it was before."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


def writable(folder: Path) -> Path:
    """The folder, made if need be; refused before anything runs if results could not be kept in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
        return folder
    except OSError as error:
        raise UserError(
            f"Results cannot be written to {str(folder)!r} ({error.strerror}); give another folder."
        ) from None
