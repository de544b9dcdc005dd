"""Forks the later runs of a program from a process that has TensorFlow imported, which takes seconds in each run.

The first run imports TensorFlow itself, and shows what the program changes before of the variables that TensorFlow reads then.
"""

import os
import sys
import threading
import time
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from ...observer.events import TensorFlowImported
from ...processes import python_process
from ..recording import read_events
from .program_spec import ProgramSpec

BETWEEN_LOOKS = 0.1  # seconds


class ImportedTensorFlow:
    def __init__(self, program: ProgramSpec):
        # A fork server runs this interpreter.
        self.is_possible = is_this_python(program.python) and not replaces_modules(program)
        self.first: Path | None = None  # the events of the first run
        self.is_over = False  # the first run

    def begin(self, events: Path, environment: Mapping[str, str], beside: bool) -> None:
        """Makes this the first run. A fork server starts when this imports TensorFlow, if it may go on `beside`."""
        self.first = events
        if self.is_possible and beside:
            threading.Thread(target=self.prepare, args=(environment,), daemon=True).start()

    def prepare(self, environment: Mapping[str, str]) -> None:
        while not self.is_known:
            time.sleep(BETWEEN_LOOKS)
        if imported := self.imported():
            python_process.begin_plain_fork_server(changed(environment, imported))

    @property
    def is_known(self) -> bool:
        """Whether more of the first run would not change from where the next run is forked."""
        return not self.is_possible or self.is_over or self.imported() is not None

    def imported(self) -> TensorFlowImported | None:
        """Returns how the first run has imported TensorFlow; None if it has not, or not yet."""
        events = read_events(self.first) if self.first else ()
        return next((each for each in events if isinstance(each, TensorFlowImported)), None)

    def server(self, environment: Mapping[str, str]) -> str | None:
        """Returns a fork server that has imported TensorFlow as the first run has; None if there can be none."""
        imported = self.imported() if self.is_possible else None
        return (
            python_process.plain_fork_server(changed(environment, imported)) if imported else None
        )


def changed(environment: Mapping[str, str], imported: TensorFlowImported) -> dict[str, str]:
    """Returns an environment as it is when the program imports TensorFlow."""
    kept = {name: value for name, value in environment.items() if name not in imported.deleted}
    return {**kept, **dict(imported.given)}


def is_this_python(path: str) -> bool:
    """Tells whether this interpreter has the path, in the same environment: an environment may be reached through links."""
    both = [(each, os.path.dirname(each)) for each in (path, sys.executable)]
    return len({tuple(map(os.path.realpath, each)) for each in both}) == 1


def replaces_modules(program: ProgramSpec) -> bool:
    """Tells whether the program's folder has modules that are imported in place of others, which a fork server has."""
    script = Path(program.arguments[0])
    folder = program.folder if str(script) == "-m" else (program.folder / script).parent
    others = [path for path in sys.path if path and os.path.realpath(path) != str(folder.resolve())]
    return any(
        name in sys.stdlib_module_names or PathFinder.find_spec(name, others)
        for name in modules_in(folder) - {script.stem}
    )


def modules_in(folder: Path) -> set[str]:
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return packages | {path.stem for path in folder.glob("*.py")}
