"""ProgramSpec: what is examined and how it is run, and the checks that it can be."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ...base.errors import UserError, choose
from ..cells import Listing, require_python


@dataclass(frozen=True)
class ProgramSpec:
    """A script or a module with its arguments, or the cells of a notebook, and how they are run."""

    arguments: tuple[str, ...]  # train.py --epochs 1, or -m package.train
    folder: Path
    python: str = sys.executable
    keras: int | None = None
    limit: float = 600  # seconds for each run
    steps: int = 0  # after which a run is stopped; 0 lets it finish
    fork_server: str | None = None  # that the program is forked from
    listing: Listing | None = None  # cells that the copy of the folder gets as a script
    edited: tuple[
        tuple[str, str], ...
    ] = ()  # files that have another text in the copy of the folder

    @property
    def name(self) -> str:
        return self.listing.name if self.listing else " ".join(self.arguments)

    @property
    def file(self) -> str:
        """The file that is started; nothing for a module, which may be a package."""
        if self.listing:
            return self.listing.file
        first = self.arguments[0]
        return "" if first == "-m" else str(self.folder / first)

    def with_listing(self, listing: Listing) -> "ProgramSpec":
        """Returns the program with cells instead of its first argument."""
        arguments = (listing.file_name, *self.arguments[1:])
        return replace(self, arguments=arguments, listing=listing)

    def checked(self) -> "ProgramSpec":
        """Returns the program with the script as a copy of the folder has it; raises UserError if it cannot be run."""
        first, *others = self.arguments
        program = self
        if self.listing:
            if self.python == sys.executable:
                require_python(self.listing)
        elif first != "-m":
            if not (self.folder / first).is_file():
                raise UserError(f"There is no file {first!r} in {str(self.folder)!r} to examine.")
            program = replace(self, arguments=(script_in(self.folder, first), *others))
        if self.keras is not None:
            choose("keras", self.keras, (2, 3))
        if not self.fork_server:  # a forked process has it
            require_tensorflow(self.python)
        return program


def script_in(folder: Path, name: str) -> str:
    """Returns the path of a script relative to the folder, or its absolute path if it is elsewhere."""
    path = Path(os.path.abspath(folder / name))
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def require_tensorflow(python: str) -> None:
    code = "import importlib.util as u; raise SystemExit(u.find_spec('tensorflow') is None)"
    try:  # not in the program's folder: a file there may have the name of TensorFlow
        done = subprocess.run([python, "-c", code], cwd=os.sep, capture_output=True)
    except OSError as error:
        raise UserError(
            f"{python!r} cannot be run ({error.strerror}): give another --python."
        ) from None
    if done.returncode:
        raise UserError(
            f"{python!r} has no TensorFlow: give the one that the program uses as --python."
        )
