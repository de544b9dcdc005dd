"""Folders for temporary files, one for each forked process: AutoGraph's are deleted only by a process that ends by itself.

What else lies there at the end is somebody's own, and stays.
"""

import contextlib
import os
import tempfile
from pathlib import Path

PREFIX = "clinic-"
AUTOGRAPH = (
    "__autograph_generated_file*"  # what AutoGraph writes, since Python traces code from files
)


def folder_for_child(environment: dict) -> Path:
    """A new folder, named after this process, where the child would have put its temporary files."""
    given = environment.get("TMPDIR", "")
    place = given if os.path.isdir(given) else tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))


def tidy(folder: Path):
    for file in folder.glob(AUTOGRAPH):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it holds something else, or is gone with the folder above
        folder.rmdir()


def tidy_after_the_dead():
    """What was left when a warm process was killed, and its children with it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}[0-9]*-*"):
        if not Path(f"/proc/{folder.name.split('-')[1]}").exists():
            tidy(folder)
