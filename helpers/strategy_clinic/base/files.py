"""Paths of the package and of the repository, and files that are never left half written.

Paths are computed when they are asked for, since tests point ROOT at a copy of the repository.
"""

import functools
import os
import re
import tokenize
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import UserError

PACKAGE = Path(__file__).parents[1]
SHIPPED = PACKAGE / "shipped"  # in a wheel: the repository's files from outside of the package
ROOT = SHIPPED if SHIPPED.exists() else PACKAGE.parents[1]


def is_clone() -> bool:
    """Returns whether this is the repository. A wheel holds copies, which the next version replaces."""
    return ROOT != SHIPPED


def package() -> Path:
    """Returns the folder of the package: the one below ROOT in a repository."""
    return ROOT / "helpers" / "strategy_clinic" if is_clone() else PACKAGE


def notebooks() -> Path:
    return ROOT / "notebooks"


def shown_notebook(name: str) -> str:
    """Returns the path of a notebook for a message: in a repository from its root, elsewhere where the wheel has put it."""
    return f"notebooks/{name}" if is_clone() else str(notebooks() / name)


def page_sources() -> list[Path]:
    """Returns the source of every notebook, in the order of the notebooks' names."""
    places = ("pages/*.py", "pages/documents/*.py", "modes/fm*/page.py")
    return sorted((path for place in places for path in package().glob(place)), key=page_name)


def mode_pages() -> dict[str, Path]:
    """Returns the page of every failure mode by the mode's id, in the order of the ids."""
    return {page_id(path): path for path in page_sources() if path.name == "page.py"}


def page_name(source: Path) -> str:
    """Returns the name of a page's notebook: for a mode, that of its folder."""
    return source.parent.name if source.name == "page.py" else source.stem


def page_id(source: Path) -> str:
    """Returns what a command calls a page: the id of its mode, or the first word of its name."""
    return page_name(source).split("_")[0]


def page_source(name: str) -> Path:
    """Returns where the source of the notebook of this name is, or would be."""
    if re.match(r"fm\d\d_", name):
        return package() / "modes" / name / "page.py"
    folder = "pages/documents" if re.match(r"\d{3}_", name) else "pages"
    return package() / folder / f"{name}.py"


def document_pages() -> list[Path]:
    """Returns the source of the notebook of each of the five documents."""
    return list(filter(is_of_document, page_sources()))


def is_of_document(source: Path) -> bool:
    return source.parent.name == "documents"


def notebook(source: Path) -> Path:
    """Returns where the notebook of a page is, or would be."""
    folder = notebooks() / "documents" if is_of_document(source) else notebooks()
    return folder / f"{page_name(source)}.ipynb"


def stored_notebooks() -> list[Path]:
    """Returns all notebooks that are there, those of the documents last."""
    places = (notebooks(), notebooks() / "documents")
    return [path for place in places for path in sorted(place.glob("*.ipynb"))]


def mode_folder(mode: str) -> Path:
    """Returns the folder of a mode, in a package without pages, too."""
    return max((package() / "modes").glob(f"{mode}_*"))


def program_text(mode: str, subject: str) -> str:
    """Returns the text of a program of a mode: `broken`, `fixed`, `exercise` or `solution`; "" if there is none."""
    page = max((package() / "modes").glob(f"{mode}_*/page.py"))
    path = page.with_name(f"{subject}.py")
    return path.read_text() if path.exists() else ""


@functools.cache
def toml(text: str) -> Mapping[str, Any]:
    """Parses a text of TOML, each text once: what is returned is not to be changed."""
    return tomllib.loads(text)


def write_whole(path: Path, text: str) -> None:
    """Writes a file by replacing it, so that nobody reads a part of the text."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


def writable(folder: Path) -> Path:
    """Returns the folder, made if it is missing; raises a UserError if it cannot be written to."""
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


def source_text(path: Path) -> str:
    """Returns the text of a Python file, in the encoding that its first lines name and with each line ended by a newline.

    Raises OSError if it cannot be read. What is not in the encoding is replaced.
    """
    return path.read_text(encoding=encoding_of(path), errors="replace")


def encoding_of(path: Path) -> str:
    """Returns the encoding that the first lines of a Python file name; raises OSError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return tokenize.detect_encoding(file.readline)[0]
    except SyntaxError:  # which Python refuses
        return "utf-8"
