"""Folders for the temporary files of forked processes. AutoGraph deletes its files only in a process that ends by itself."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

PREFIX = "clinic-"
AUTOGRAPH = "__autograph_generated_file*"  # Python traces code from files, so AutoGraph writes some


def new_folder(environment: Mapping[str, str]) -> Path:
    """Returns a new folder, named after this process, where a child would have put its temporary files."""
    given = environment.get("TMPDIR", "")
    parent = given if os.path.isdir(given) else tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))


def delete_folder(folder: Path) -> None:
    """Deletes AutoGraph's files, and what Python compiled of them; then each folder that holds nothing else."""
    for place in (folder / "__pycache__", folder):
        for path in place.glob(AUTOGRAPH):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            place.rmdir()


def delete_folders_of_dead_servers() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}[0-9]*-*"):
        if not Path(f"/proc/{folder.name.split('-')[1]}").exists():
            delete_folder(folder)
