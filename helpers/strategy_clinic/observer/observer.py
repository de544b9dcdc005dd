"""Defines the observer: it reports as events what a program does with TensorFlow and Keras. It decides nothing."""

from __future__ import annotations

import functools
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..setups.start_variables import is_read_at_import
from .checkpoints import Checkpoints
from .context import Context, Settings
from .copies import Copies
from .counts import Counts
from .events import (
    DivergedCopies,
    Ended,
    ExceptionRaised,
    Frame,
    Outcome,
    Stack,
    Started,
    TensorFlowImported,
)
from .examples import Examples
from .files_moved import FilesMoved
from .frozen_values import FrozenValues
from .graph_loops import GraphLoops
from .keras_models import KerasModels
from .kills import Kills
from .lineage import Lineage
from .loaded_again import FilesLoadedAgain
from .model_settings import ModelsSettings
from .optimizers import Optimizers
from .options import Options
from .patching import ImportWatch
from .processes import Processes
from .program_state import ProgramStates
from .provenance import Provenance
from .replacements import Replacements
from .restarts import Restarts
from .tracing import Tracing
from .training import Training
from .unfrozen import Unfrozen
from .unused_loads import UnusedLoads
from .variables import Variables

FRAME_IN_MESSAGE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
MOST_TEXT = 60_000  # characters of a traceback, its end
Action = Callable[[], None]


class Observer:
    """Watches a process from `start` to `stop`, after which every function is what it was."""

    def __init__(self, settings: Settings) -> None:
        self.context = Context(settings)
        self.variables = Variables(self.context)
        self.optimizers = Optimizers(self.context, self.variables)
        self.counts = Counts(self.context, self.variables, self.optimizers)
        self.examples = Examples(self.context, self.optimizers)
        self.program_states = ProgramStates(self.context, self.optimizers)
        self.training = Training(
            self.context,
            self.variables,
            self.optimizers,
            self.counts,
            self.examples,
            self.program_states,
            self.end,
        )
        self.kills = Kills(self.context)
        self.checkpoints = Checkpoints(
            self.context,
            self.variables,
            self.optimizers,
            self.kills,
            self.program_states,
            self.training.most_replicas,
        )
        self.models = KerasModels(self.context, self.variables)
        self.copies = Copies(self.context, self.variables, self.models.made_at)
        self.unfrozen = Unfrozen(self.context, self.variables, self.optimizers, self.models.made_at)
        self.tracing = Tracing(self.context)
        self.processes = Processes(self.context, self.exception_raised, self.end)
        self.frozen_values = FrozenValues(self.context)
        self.model_settings = ModelsSettings(self.context)
        self.loaded_again = FilesLoadedAgain(self.context, self.model_settings)
        self.unused_loads = UnusedLoads(self.context, self.variables, self.frozen_values)
        self.replacements = Replacements(self.context, self.variables)
        self.loops = GraphLoops(self.context)
        self.lineage = Lineage(self.context)
        self.options = Options(self.context)
        self.files_moved = FilesMoved(self.context)
        self.restarts: Restarts | None = None  # of a process that is started to be examined
        self.before_exception: list[Callable[[BaseException], None]] = []
        self.imports = ImportWatch({}, {"tensorflow": self.tensorflow_wanted})
        self.environment = dict(os.environ)  # before the program has run
        self.began, self.ended, self.raised = time.monotonic(), False, False

    def start(self, prepare: Mapping[str, Action] | None = None) -> None:
        """Watches what is imported at once, and other modules as soon as they are imported.

        `prepare` has actions by the name of a module that come before.
        """
        self.context.emit(Started(self.context.settings.devices, os.getcwd()))
        self.options.watch()
        self.files_moved.watch()
        watches, prepare = self.watches(), prepare or {}
        for name in {**watches, **prepare}:
            actions = [each[name] for each in (prepare, watches) if name in each]
            if name in sys.modules:  # as in a process that was forked from one that has it
                self.run(actions)
            else:
                self.imports.actions[name] = functools.partial(self.run, actions)
        sys.meta_path.insert(0, self.imports)

    def stop(self) -> None:
        self.context.stopped = (
            True  # for functions that the program has taken from where they are replaced
        )
        self.context.patches.restore()
        if self.imports in sys.meta_path:
            sys.meta_path.remove(self.imports)

    def run(self, actions: list[Action]) -> None:
        for action in actions:
            self.context.guard_always(action)

    def watches(self) -> dict[str, Action]:
        return {
            "tensorflow": self.watch_tensorflow,
            "keras": lambda: self.watch_keras("keras"),
            "tf_keras": lambda: self.watch_keras("tf_keras"),
            "numpy": self.checkpoints.watch_numpy,
            "absl.flags": self.options.watch_absl,
            "click": self.options.watch_click,
            "fire": self.options.watch_fire,
            "docopt": self.options.watch_docopt,
        }

    def tensorflow_wanted(self) -> None:
        """Reports, before TensorFlow is imported, which of the variables that it reads the program has changed."""
        before, now = (
            {name: value for name, value in each.items() if is_read_at_import(name)}
            for each in (self.environment, os.environ)
        )
        given = tuple(sorted(now.items() - before.items()))
        self.context.emit(TensorFlowImported(given, tuple(sorted(before.keys() - now.keys()))))

    def watch_tensorflow(self) -> None:
        self.context.provenance.watch(self.context.patches)
        self.variables.watch()
        self.counts.watch()
        self.examples.watch()
        self.training.watch()
        self.tracing.watch()
        self.frozen_values.watch()
        self.unused_loads.watch()
        self.checkpoints.watch()
        self.copies.watch()
        self.optimizers.watch()
        self.replacements.watch()
        self.loops.watch()
        self.lineage.watch()
        self.files_moved.watch_tensorflow()

    def watch_keras(self, package: str) -> None:
        """Watches Keras 3, which is `keras`, or Keras 2, which is `tf_keras`."""
        keras = sys.modules[package]
        self.models.watch(package, keras)
        self.copies.watch_keras(package, keras)
        self.unused_loads.watch_keras(package, keras)
        self.model_settings.watch_keras(package, keras)
        self.loaded_again.watch_keras(package, keras)
        self.checkpoints.watch_keras(package, keras)
        self.optimizers.watch_keras(keras)
        self.unfrozen.watch_keras(keras)
        self.replacements.watch_keras(package, keras)

    # The end

    def exception_raised(self, error: BaseException) -> None:
        """Reports the exception that ends the program."""
        for report in self.before_exception:
            self.context.guard(report, error)
        self.raised = True
        self.context.guard(self.report_exception, error)

    def report_exception(self, error: BaseException) -> None:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        provenance = self.context.provenance
        traced = tuple(
            Frame(path, int(line), name)
            for path, line, name in FRAME_IN_MESSAGE.findall(str(error))
            if provenance.is_own(path)
        )
        location = location_of(error, provenance)
        kind = type(error).__name__
        self.context.emit(ExceptionRaised(location, kind, text[-MOST_TEXT:], traced[::-1]))

    def end(self, outcome: Outcome, status: int) -> None:
        """Reports the end once, with the values of all variables; in a forked process that made no step, nothing."""
        if self.ended or not self.processes.has_own_end:
            return
        self.ended = True
        look = self.context.guard_always if "tensorflow" in sys.modules else lambda _: None
        look(self.copies.report_outdated)
        look(self.counts.report)
        look(self.examples.report)
        if outcome is Outcome.FINISHED:
            look(self.unfrozen.report)
            look(self.unused_loads.report_unused)
            look(self.model_settings.report)
        ended = Ended(
            outcome=outcome,
            status=status,
            seconds=round(time.monotonic() - self.began, 3),
            values=look(self.variables.last_values) or (),
            diverged_copies=look(self.diverged_copies) or (),
            restored_before_build=look(self.checkpoints.restored_before_build) or (),
            optimizers=look(self.optimizers.states) or (),
            drawn=look(self.restarts.drawn) or () if self.restarts else (),
        )
        # A process that does nothing more.
        is_over = self.restarts and not self.context.settings.leader
        if outcome is Outcome.FINISHED and is_over:
            look(self.loaded_again.report)
        self.context.emit(ended)

    def end_of_child(self) -> None:
        """Reports the end of a process that the program has started; only its parent knows the status."""
        self.end(Outcome.RAISED if self.raised else Outcome.FINISHED, int(self.raised))

    def diverged_copies(self) -> tuple[DivergedCopies, ...]:
        return tuple(
            replace(copies, layer_location=self.models.layer_location(copies.number))
            for copies in self.variables.diverged_copies()
        )


def location_of(error: BaseException, provenance: Provenance) -> Stack:
    """Returns the program's lines in the traceback of an exception, or else of the one that it came from."""
    cause: BaseException | None = error
    while cause is not None:
        frames = tuple(
            Frame(os.path.abspath(frame.filename), frame.lineno or 0, frame.name)
            for frame in traceback.extract_tb(cause.__traceback__)[::-1]
            if provenance.is_own(frame.filename)
        )
        if frames:
            return frames
        cause = cause.__cause__ or cause.__context__
    return ()
