"""Runs a program as the observer does, on the same devices with the same seeds, and records what its replicas hold.

python FOLDER/strategy_clinic/inside/__main__.py --watched N --events FILE [--devices N] ... -- train.py ARGUMENTS
"""

from __future__ import annotations

import functools
import os
import random
import sys
from collections.abc import Callable

from ..observer import main as observed
from ..observer.context import Settings
from ..observer.events import Outcome, Stack
from ..observer.observer import Observer, location_of
from ..observer.outside import Outside
from ..observer.restarts import Restarts
from ..observer.stacks import write_stacks
from .message import words_of
from .printed import LastLine
from .watch import Watch


def main() -> None:
    place = sys.argv.index("--")
    options, program = sys.argv[1:place], sys.argv[place + 1 :]
    steps = int(options.pop(options.index("--watched") + 1))
    options.remove("--watched")
    settings = observed.read_settings(options)
    if settings.enter:
        from ..observer.entrance import enter_view  # Linux has namespaces

        enter_view(settings.enter)
    write_stacks(settings.events)
    sys.exit(observed.run_observed(watching(settings, program, steps), program))


class InsideObserver(Observer):
    """An observer that only records what replicas hold."""

    def __init__(self, settings: Settings, steps: int) -> None:
        super().__init__(settings)
        self.inside = Watch(self.context, steps, self.end)
        self.printed = LastLine(sys.stdout)
        self.error = ""
        self.where: Stack = ()

    def watches(self) -> dict[str, Callable[[], None]]:
        keras = {name: functools.partial(self.watch_keras, name) for name in ("keras", "tf_keras")}
        return {"tensorflow": self.inside.watch_tensorflow, **keras}

    def watch_keras(self, package: str) -> None:
        self.inside.watch_keras(sys.modules[package])

    def exception_raised(self, error: BaseException) -> None:
        self.error, self.where = line_of(error), location_of(error, self.context.provenance)
        super().exception_raised(error)

    def end(self, outcome: Outcome, status: int) -> None:
        words = {Outcome.FINISHED: self.printed.words, Outcome.RAISED: self.error}
        said = words.get(outcome, "") if self.processes.has_own_end else ""
        self.context.guard_always(self.inside.finish, outcome, said, self.where)
        super().end(outcome, status)


def line_of(error: BaseException) -> str:
    """Returns an exception as the last line of its traceback has it, without the names of operations."""
    name, words = type(error).__name__, words_of(str(error))
    return words if words.startswith(name) else f"{name}: {words}"


def watching(settings: Settings, program: list[str], steps: int) -> InsideObserver:
    """Returns an observer that has begun to watch this process, in which no line of the program has run yet."""
    if settings.seed:
        random.seed(settings.seed)
    if settings.keras:
        os.environ["TF_USE_LEGACY_KERAS"] = str(int(settings.keras == 2))
    observer = InsideObserver(settings, steps)
    observer.context.provenance.runs(program)
    outside, restarts = Outside(observer.context), Restarts(observer.context)
    outside.start()
    observer.start(
        {
            "numpy": functools.partial(observed.prepare_numpy, observer, restarts),
            "tensorflow": functools.partial(
                observed.prepare_tensorflow, observer, restarts, outside
            ),
            "h5py": functools.partial(observed.prepare_h5py, observer, outside),
            "sqlite3": outside.watch_sqlite,
        }
    )
    observer.processes.watch()
    return observer
