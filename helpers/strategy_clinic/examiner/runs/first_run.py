"""What the first run of a program shows while it goes on: whether others are needed, and from what they can be forked.

It imports TensorFlow itself, which takes seconds. Later runs are forked from a process that has imported TensorFlow with the
variables of the environment that the program had then.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from ...observer.events import StrategyMade, TensorFlowImported
from ...processes import python_process
from ..reading import NewLines, from_json
from .program_spec import ProgramSpec

BETWEEN_LOOKS = 0.1  # seconds
LOOKED_FOR = "TensorFlowImported", "StrategyMade"


class FirstRun:
    def __init__(self, program: ProgramSpec):
        # A fork server runs this interpreter.
        self.can_fork = not program.fork_server and (
            is_this_python(program.python) and not replaces_modules(program)
        )
        self.events: Path | None = None
        self.lines: Iterable[str] = ()  # of the events
        self.reading = threading.Lock()
        self.is_over = False
        self.imported: TensorFlowImported | None = None
        self.replicas = 1

    def begin(self, events: Path, environment: Mapping[str, str], beside: bool) -> None:
        """Makes this the first run. A fork server starts when it imports TensorFlow, if that may go on `beside`."""
        self.events, self.lines = events, NewLines(events)
        if self.can_fork and beside:
            threading.Thread(target=self.prepare, args=(environment,), daemon=True).start()

    def prepare(self, environment: Mapping[str, str]) -> None:
        while not (self.is_over or self.imported):
            time.sleep(BETWEEN_LOOKS)
            self.look()
        if self.imported:
            python_process.begin_plain_fork_server(changed(environment, self.imported))

    def look(self) -> None:
        """Reads what the run has shown since the last look."""
        with self.reading:
            for line in self.lines:
                if any(name in line for name in LOOKED_FOR):
                    self.keep(line)

    def keep(self, line: str) -> None:
        event = from_json(line)
        if isinstance(event, TensorFlowImported):
            self.imported = event
        if isinstance(event, StrategyMade):
            self.replicas = max(self.replicas, event.replicas)

    def server(self, environment: Mapping[str, str]) -> str | None:
        """Returns a fork server that has imported TensorFlow as this run has; None if there can be none."""
        self.look()
        if not self.can_fork or not self.imported:
            return None
        return python_process.plain_fork_server(changed(environment, self.imported))


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
