"""Observes what a restart depends on: files that are looked for, what callbacks remember, and what is drawn at random.

These patches are only in processes that are started to be examined.
"""

from __future__ import annotations

import functools
import glob
import os
import pathlib
import random
import sys
from typing import Any

from .audit import OPENED, listen
from .context import Context
from .events import (
    CallbackState,
    EpochsLeftOut,
    FileWritten,
    LookedFor,
    OrderDrawn,
    Owner,
    SeedRepeated,
    Stack,
)
from .identity_map import IdentityMap
from .patching import Call
from .python_paths import TO_WRITE, WRITING

INDEX = ".index"  # the file of each checkpoint
MOST_PATHS = 300  # that are reported as looked for
MOST_STATES = 200  # of one kind of callback that are reported
CALLBACKS = "EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint"
# Functions whose first argument is a file that they look for; and those that list files.
LOOKING = (
    (os.path, ("exists", "isfile", "isdir"), False),
    (os, ("listdir",), True),
    (glob, ("glob", "iglob"), True),
    (pathlib.Path, ("exists", "is_file", "is_dir"), False),
    (pathlib.Path, ("glob", "iterdir"), True),
)


class Restarts:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.generators: dict[str, tuple[Any, bool]] = {}  # of NumPy, and whether each has a seed
        self.states_before: dict[str, str] | None = None  # of generators, after the first step
        self.looked: set[tuple[str, bool]] = set()
        self.sought: set[str] = set()  # the absolute paths of files that were looked for
        self.callbacks_made: IdentityMap[Stack] = IdentityMap()
        self.epochs: IdentityMap[list[int]] = IdentityMap()  # by model, with their steps

    def watch(self) -> None:
        self.context.after_step.append(self.step_ended)
        listen(self.context, {OPENED}, self.opens)
        self.watch_seed(random, "seed", "a")
        self.watch_seed(random.Random, "__init__", "x")
        for owner, names, lists in LOOKING:
            for name in names:
                self.context.guard_always(self.watch_looking, owner, name, lists)

    def watch_looking(self, owner: Any, name: str, lists: bool) -> None:
        before = functools.partial(self.looks_for, lists)
        self.context.patches.wrap(owner, name, before=before)

    def watch_numpy(self) -> None:
        generators = sys.modules["numpy"].random
        self.watch_seed(generators, "default_rng", after=self.generator_made)
        self.watch_seed(generators, "seed")

    def watch_tensorflow(self) -> None:
        import tensorflow as tf

        for name in ("exists", "glob", "listdir"):
            self.context.guard_always(self.watch_looking, tf.io.gfile, name, name != "exists")
        for name in ("restore", "read"):
            self.context.patches.wrap(tf.train.Checkpoint, name, before=self.restores)
        self.context.patches.wrap_everywhere(
            "tensorflow", tf.saved_model.load, before=self.loads_model
        )
        self.watch_seed(tf.data.Dataset, "shuffle", after=self.shuffled)
        self.watch_seed(tf.random, "set_seed")

    def watch_keras(self, package: str) -> None:
        keras, wrap = sys.modules[package], self.context.patches.wrap
        self.watch_seed(keras.utils, "set_random_seed")
        wrap(keras.Model, "load_weights", before=self.loads)
        everywhere = self.context.patches.wrap_everywhere
        everywhere(package, keras.models.load_model, before=self.loads_model)
        wrap(keras.Model, "fit", before=self.fit_begins, after=self.fit_ended)
        wrap(keras.callbacks.BackupAndRestore, "__init__", before=self.backs_up)
        for name in CALLBACKS:
            kind = getattr(keras.callbacks, name)
            wrap(kind, "__init__", after=self.callback_made)
            wrap(kind, "on_train_begin", after=self.training_begins, group="callbacks")
            wrap(kind, "on_epoch_end", after=self.epoch_ended, group="callbacks")
        # A class of the program's may go on, once its base has begun.
        begun = keras.callbacks.CallbackList
        wrap(begun, "on_train_begin", after=self.trainings_begin, group="callbacks")
        wrap(begun, "on_epoch_begin", before=self.epoch_begins)
        wrap(begun, "on_train_batch_end", before=self.batch_ended)

    # Files that are looked for

    def looks_for(self, lists: bool, call: Call) -> None:
        if self.context.provenance.called_by_program():
            self.looked_for(next(iter(call.bound.arguments.values())), lists)

    def loads(self, call: Call) -> None:
        if self.context.provenance.called_by_program():
            self.looked_for(call["filepath"], False)

    def loads_model(self, call: Call) -> None:
        self.reads(next(iter(call.bound.arguments.values())))

    def restores(self, call: Call) -> None:
        if call["save_path"] is not None:
            self.reads(call["save_path"], INDEX)

    def backs_up(self, call: Call) -> None:
        self.looked_for(call["backup_dir"], True)

    def opens(self, _: str, arguments: Any) -> None:
        path, mode, flags = arguments
        writes = TO_WRITE & {*mode} if isinstance(mode, str) else flags & WRITING
        self.writes(path) if writes else self.reads(path)

    def reads(self, path: Any, ending: str = "") -> None:
        """Reports what the program reads that does not exist: it may expect that, and catch the exception."""
        text = os.fsdecode(path) if is_path(path) else ""
        if text and not os.path.lexists(text + ending) and self.context.provenance.is_own(text):
            self.looked_for(text, False)

    def writes(self, path: Any) -> None:
        absolute = os.path.abspath(os.fsdecode(path)) if is_path(path) else ""
        if absolute in self.sought:
            self.sought.remove(absolute)
            stack = self.context.provenance.plain_stack()
            self.context.emit(FileWritten(stack, os.fsdecode(path)))

    def looked_for(self, path: Any, lists: bool) -> None:
        path = "." if path is None else path
        if not is_path(path):
            return  # a descriptor, or several patterns
        text = os.fsdecode(path)
        if (text, lists) not in self.looked and len(self.looked) < MOST_PATHS:
            self.looked.add((text, lists))
            self.sought |= set() if lists else {os.path.abspath(text)}
            self.context.emit(LookedFor(self.context.provenance.plain_stack(), text, lists))

    # Callbacks

    def callback_made(self, _: Any, call: Call) -> None:
        self.callbacks_made[call.owner] = self.context.provenance.stack()

    def trainings_begin(self, _: Any, call: Call) -> None:
        for callback in call.owner.callbacks:
            self.report_state(callback, True, -1)

    def training_begins(self, _: Any, call: Call) -> None:
        self.report_state(call.owner, True, -1)

    def epoch_ended(self, _: Any, call: Call) -> None:
        self.report_state(call.owner, False, int(call["epoch"]))

    def report_state(self, callback: Any, begins: bool, epoch: int) -> None:
        kinds = [kind.__name__ for kind in type(callback).__mro__]
        name = next((each for each in CALLBACKS if each in kinds), "")
        if not name or self.context.count("callback", name) > MOST_STATES:
            return  # another callback, which inherits the same method
        best, is_better = getattr(callback, "best", None), getattr(callback, "monitor_op", None)
        self.context.emit(
            CallbackState(
                location=self.callbacks_made.get(callback) or self.context.provenance.stack(),
                callback=name,
                begins=begins,
                best=None if best is None else float(best),
                wait=int(getattr(callback, "wait", 0) or 0),
                path=str(getattr(callback, "filepath", "")),
                epoch=epoch,
                monitor=str(getattr(callback, "monitor", "")),
                smaller=bool(is_better(0.0, 1.0)) if callable(is_better) else True,
                steps=self.context.steps.count,
            )
        )

    # Epochs that are left out

    def fit_begins(self, call: Call) -> None:
        """Keeps the epoch with which Keras 3 begins, whatever the program asks for, since a backup was restored once."""
        self.draw_order(call)
        self.epochs[call.owner] = []
        given = call["callbacks"] or ()
        callbacks = getattr(given, "callbacks", given)  # a list, or one that Keras has made
        every = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
        restores = any(map(has_backup, every))
        call.state = 0 if restores else int(getattr(call.owner, "_initial_epoch", 0) or 0), restores

    def epoch_begins(self, call: Call) -> None:
        self.epochs.setdefault(call.owner.model, list).append(0)

    def batch_ended(self, call: Call) -> None:
        epochs = self.epochs.get(call.owner.model)
        if epochs:
            epochs[-1] += 1

    def fit_ended(self, _: Any, call: Call) -> None:
        kept, restores = call.state
        steps = self.epochs.get(call.owner) or []
        asked, made = int(call["epochs"]) - int(call["initial_epoch"]), sum(map(bool, steps))
        # A backup that this call restores makes it shorter, too.
        if restores:
            asked = min(asked, len(steps))
        if made < asked and not getattr(call.owner, "stop_training", False):
            first = kept or int(call["initial_epoch"])
            stack = self.context.provenance.stack()
            self.context.emit(EpochsLeftOut(stack, asked, made, first, bool(kept)))

    # Random draws

    def shuffled(self, _: Any, call: Call) -> None:
        self.order_drawn("shuffle")

    def draw_order(self, call: Call) -> None:
        """Reports that `fit` gives the data another order in each epoch, which it does with arrays only."""
        data = call["x"]
        is_stream = hasattr(data, "element_spec") or hasattr(data, "__next__")
        if data is not None and not is_stream and call["shuffle"]:
            self.order_drawn("fit")

    def watch_seed(self, owner: Any, name: str, parameter: str = "seed", after: Any = None) -> None:
        seeded = functools.partial(self.seeded, name, parameter)
        self.context.guard_always(self.context.patches.wrap, owner, name, seeded, after)

    def seeded(self, function: str, parameter: str, call: Call) -> None:
        """Reports a seed that is given a second time, or gives another one, since a later use should draw other numbers."""
        seed = call[parameter]
        if type(seed) is not int or not self.context.provenance.called_by_program():
            return
        times = self.context.count("seed", function, seed)
        if times > 1 and self.context.settings.reseed:
            call.replace(parameter, seed + times)
        elif times == 2:
            self.context.emit(SeedRepeated(self.context.provenance.plain_stack(), function, seed))

    def order_drawn(self, function: str) -> None:
        site, owner = self.context.provenance.call_site()
        if owner is Owner.USER and self.context.is_first("order", function, site):
            self.context.emit(OrderDrawn(self.context.provenance.stack(), function))

    def generator_made(self, generator: Any, call: Call) -> None:
        name = f"generator {len(self.generators) + 1} of numpy.random"
        self.generators[name] = generator, call["seed"] is not None

    def step_ended(self) -> None:
        if self.states_before is None:
            self.states_before = self.generator_states()

    def generator_states(self) -> dict[str, str]:
        """Returns the states of the generators that are no variables."""
        states = {"random": repr(hash(random.getstate()))}
        numpy = sys.modules.get("numpy")
        if numpy:
            states["numpy.random"] = repr(numpy.random.get_state()[1:])
        for name, (generator, _) in self.generators.items():
            states[name] = repr(generator.bit_generator.state)
        return states

    def drawn(self) -> tuple[str, ...]:
        """Returns the generators that have given numbers since the first step, and are no later ones with seeds of their own."""
        before = self.states_before
        if before is None:
            return ()
        own = {name for name, (_, has_seed) in self.generators.items() if has_seed} - before.keys()
        now = self.generator_states()
        return tuple(
            name for name, state in now.items() if before.get(name) != state and name not in own
        )


def has_backup(callback: Any) -> bool:
    """Tells whether a callback is going to restore a backup."""
    kinds = {kind.__name__ for kind in type(callback).__mro__}
    folder = getattr(callback, "backup_dir", "") if "BackupAndRestore" in kinds else ""
    return bool(folder) and os.path.isdir(folder) and any(os.scandir(folder))


def is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))
