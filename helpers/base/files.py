"""Where things lie, and files that are written whole. Paths are asked for when they are needed, never kept."""

import json
import os
from pathlib import Path

from .refusals import Refused

HELPERS = Path(__file__).parents[1]
SHIPPED = HELPERS / "shipped"  # what a wheel brings along: the project as it lies in its repository
SAME_BY_ANOTHER_NAME = HELPERS.with_name("strategy_clinic.py")
ROOT = SHIPPED if SHIPPED.exists() else HELPERS.parent


def is_clone() -> bool:
    """Whether this is the repository; a wheel has copies of it, which the next version replaces."""
    return ROOT != SHIPPED


def helpers() -> Path:
    return ROOT / "helpers" if is_clone() else HELPERS


def modules_in(room: str) -> list[str]:
    """The modules of a room, such as `examine/rules`, as they lie in the clinic."""
    return sorted(f"{room}/{path.name}" for path in (HELPERS / room).glob("*.py"))


def notebooks() -> Path:
    return ROOT / "notebooks"


def source_folder() -> Path:
    return notebooks() / "sources"


def catalog_file() -> Path:
    return helpers() / "notebooks" / "catalog.json"


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
        raise Refused(
            f"Results cannot be written to {str(folder)!r} ({error.strerror}); give another folder."
        ) from None
