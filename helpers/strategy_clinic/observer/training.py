"""Observes strategies, steps, batches, and means over replicas."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any

from ..base import tf_internals
from .audit import ENVIRONMENT_SET, listen
from .context import BATCHES, Context, flush_output
from .counts import Counts
from .events import (
    BatchTaken,
    ClusterDescribed,
    ClusterStrategyRequested,
    DatasetBatched,
    DatasetFromFunction,
    DatasetSharded,
    ExamplesSkipped,
    InputShared,
    MeanReduced,
    Outcome,
    Owner,
    ReplicaCountRead,
    Sample,
    Stack,
    StepEnded,
    StrategyMade,
    VariableValue,
)
from .examples import Examples
from .identity_map import IdentityMap
from .optimizers import Optimizers
from .own_cluster import arguments_of_tasks
from .patching import Call, defining_class
from .program_state import ProgramStates
from .variables import Record, Variables, copies_of, is_in_replica, sample_of

# Calls after which trained variables are looked at, and steps that are reported, of each of the first trainings.
MOST_LOOKS, MOST_STEPS, MOST_TRAININGS = 24, 3, 4
TF_CONFIG = "TF_CONFIG"  # in the environment
CONSTANTS = "Const", "Fill"  # operations in a graph whose result is no data

# Datasets that have the batches of another one, by their classes.
UNCHANGED = (
    "Prefetch",
    "Map",
    "ParallelMap",
    "Repeat",
    "Shuffle",
    "Take",
    "Skip",
    "Options",
    "Cache",
)
SAME_BATCHES = {f"{name}Dataset" for name in UNCHANGED}


class Training:
    def __init__(
        self,
        context: Context,
        variables: Variables,
        optimizers: Optimizers,
        counts: Counts,
        examples: Examples,
        program_states: ProgramStates,
        end: Callable[[Outcome, int], None],
    ) -> None:
        self.context, self.variables, self.optimizers = context, variables, optimizers
        self.counts, self.examples, self.end = counts, examples, end
        self.program_states = program_states
        self.strategies: list[weakref.ref[Any]] = []
        self.run_stacks: dict[tuple[tuple[CodeType, int], ...], Stack] = {}
        self.run_result: list[Any] = []  # of the last `strategy.run`
        self.batch_sizes: tuple[int, ...] = ()  # examples that each replica got last
        self.sizes: IdentityMap[int] = IdentityMap()  # of the batches of datasets
        # Of those that are distributed, and of those from which batches are taken; 0: unknown.
        self.distributed_sizes: set[int] = set()
        self.iterated_sizes: set[int] = set()
        self.training, self.looks, self.steps = 1, 0, 0
        self.optimizers_seen: tuple[int, ...] = ()
        self.new_optimizers: tuple[int, ...] = ()  # of this training
        self.last_values: tuple[VariableValue, ...] = ()
        self.steps_left = context.settings.steps

    def watch(self) -> None:
        import tensorflow as tf

        listen(self.context, {ENVIRONMENT_SET}, self.environment_set)
        patches, distribute = self.context.patches, tf.distribute
        wrap = patches.wrap
        wrap(distribute.Strategy, "__init__", after=self.strategy_made)
        wrap(
            distribute.Strategy, "run", before=self.run_begins, after=self.step_ended, group="step"
        )
        wrap(distribute.MultiWorkerMirroredStrategy, "__init__", before=self.multi_worker_requested)
        wrap(distribute.ParameterServerStrategy, "__init__", before=self.parameter_server_requested)
        wrap(distribute.Strategy, "reduce", after=self.reduced)
        wrap(distribute.Strategy, "experimental_distribute_dataset", after=self.distributed)
        wrap(
            distribute.Strategy,
            "experimental_distribute_values_from_function",
            after=self.values_distributed,
        )
        wrap(
            distribute.Strategy,
            "distribute_datasets_from_function",
            after=self.distributed_from_function,
        )
        for kind in (distribute.Strategy, distribute.ReplicaContext, distribute.InputContext):
            patches.wrap_property(kind, "num_replicas_in_sync", self.replicas_counted)
        wrap(distribute.InputContext, "get_per_replica_batch_size", after=self.batch_divided)
        for name in BATCHES:
            wrap(tf.data.Dataset, name, after=self.batched)
        wrap(tf.data.Dataset, "shard", after=self.sharded)
        wrap(tf.data.Dataset, "skip", after=self.skipped)
        function = type(tf.function(lambda: None))
        wrap(function, "__call__", before=self.call_begins, after=self.step_ended, group="step")

    # Strategies

    def multi_worker_requested(self, call: Call) -> None:
        self.cluster_requested("multi_worker")

    def parameter_server_requested(self, call: Call) -> None:
        self.cluster_requested("parameter_server")

    def environment_set(self, _: str, arguments: Any) -> None:
        if os.fsdecode(arguments[0]) == TF_CONFIG:
            self.context.emit(ClusterDescribed(self.context.provenance.plain_stack()))

    def cluster_requested(self, strategy: str) -> None:
        config = os.environ.get(TF_CONFIG, "")
        self.context.emit(ClusterStrategyRequested(self.stack(), strategy, config))
        if not self.context.settings.stay and arguments_of_tasks(config, sys.argv[1:]):
            self.stop()

    def stop(self) -> None:
        self.end(Outcome.STOPPED, 0)
        flush_output()
        os._exit(0)

    def strategy_made(self, _: Any, call: Call) -> None:
        strategy = call.owner
        name, replicas = type(strategy).__name__, strategy.num_replicas_in_sync
        if name.startswith("_"):
            return  # TensorFlow's default strategy
        self.strategies.append(weakref.ref(strategy))
        running = defining_class(type(strategy), "run")
        if self.context.is_first("run of", running):  # it may have one around that of its base
            self.context.patches.wrap(running, "run", before=self.input_given, after=self.run_ended)
        self.context.emit(StrategyMade(self.stack(), name, int(replicas)))

    def most_replicas(self) -> int:
        """Returns the largest number of replicas of the strategies that the program still has."""
        alive = [
            strategy for strategy in (reference() for reference in self.strategies) if strategy
        ]
        return max((int(strategy.num_replicas_in_sync) for strategy in alive), default=1)

    def replicas_counted(self, _: Any, __: Any) -> None:
        """Reports who may decide how large a batch is; a replica gets its batch, and scales its loss at most."""
        if is_in_replica():
            return
        if self.context.provenance.called_by_program():
            self.count_read()

    def batch_divided(self, _: Any, call: Call) -> None:
        self.count_read()

    def count_read(self) -> None:
        if self.is_first_here("count read"):
            self.context.emit(ReplicaCountRead(self.stack()))

    # Steps: calls of `strategy.run` or of a traced function from outside, after which weights differ

    def run_begins(self, call: Call) -> None:
        path = self.context.provenance.call_path()
        if path not in self.run_stacks:
            self.run_stacks[path] = self.stack()
        self.context.provenance.replicas_run(self.run_stacks[path])
        self.call_begins(call)

    def call_begins(self, call: Call) -> None:
        if self.program_states.is_wanted and is_in_main_thread() and outside_replicas():
            self.program_states.call_begins(function_of(call))

    def input_given(self, call: Call) -> None:
        call.state = self.context.counts[("applied",)]

    def run_ended(self, result: Any, call: Call) -> None:
        import tensorflow as tf

        self.run_result = tf.nest.flatten(result)
        trained = self.context.counts[("applied",)] > (call.state or 0)
        # Each training may have input of its own, and is known by its optimizers.
        if trained and self.is_first_here("input", len(self.optimizers.used)):
            self.report_shared_input(call)

    def report_shared_input(self, call: Call) -> None:
        """Reports arguments of a training step that are the same for several replicas of this process."""
        import tensorflow as tf

        strategy = call.owner  # TensorFlow's default one cannot tell its devices
        if strategy.num_replicas_in_sync < 2 or len(strategy.extended.worker_devices) < 2:
            return
        arguments = tf.nest.flatten((call["args"], call["kwargs"]))
        shared = [shared_size(argument) for argument in arguments]
        sizes = tuple(size for size in shared if size)
        if sizes and None not in shared:
            self.context.emit(InputShared(self.stack(), "run", sizes))

    def values_distributed(self, values: Any, call: Call) -> None:
        """Reports the same values for all replicas."""
        import tensorflow as tf

        parts = tf.nest.flatten(values) if self.is_first_here("values") else []
        shared = [shared_size(part) for part in parts if len(copies_of(part)) > 1]
        sizes = tuple(size for size in shared if size)
        if sizes and None not in shared:
            function = "experimental_distribute_values_from_function"
            self.context.emit(InputShared(self.stack(), function, sizes))

    def step_ended(self, _: Any, call: Call) -> None:
        trained = self.counts.step_ended(call)
        if trained:
            self.examples.step_made(arguments_of(call))
        is_main = is_in_main_thread()
        if self.program_states.is_wanted and is_main and outside_replicas():
            self.program_states.call_ended(function_of(call), trained)
        if is_main:
            self.context.steps.step()
            for react in self.context.after_step:
                react()
        if len(self.optimizers.used) > len(self.optimizers_seen) and outside_replicas():
            self.begin_training()
        if self.looks < MOST_LOOKS and self.steps < MOST_STEPS and outside_replicas():
            self.look()
        if self.steps_left:
            self.steps_left -= 1
            if self.steps_left == 0:
                self.stop()

    def begin_training(self) -> None:
        """Looks at the next steps, too, if other optimizers than those of the last ones have made this one."""
        used = tuple(self.optimizers.used)
        new = used[len(self.optimizers_seen) :]
        self.optimizers_seen = used
        if not self.steps:
            self.new_optimizers += new
        elif self.training < MOST_TRAININGS:
            self.variables.release()
            self.training, self.looks, self.steps = self.training + 1, 0, 0
            self.new_optimizers = new

    def look(self) -> None:
        """Reports the values of trained variables if they have changed since the last look."""
        records = self.variables.alive()
        trained = [record for record in records if record.trained]
        self.looks += bool(trained)
        values = tuple(VariableValue(record.number, sample_of(record)) for record in trained)
        self.variables.hold(trained)
        if not values or values == self.last_values:
            return
        initial = () if self.steps else self.initial_values(trained)
        if initial and {*values} <= {*initial}:
            return  # a learning rate that begins at 0 changes nothing
        self.last_values, self.steps = values, self.steps + 1
        # Some optimizers divide their updates by what they keep of the first gradients, so that no update shows a factor.
        numbers = self.optimizers.variables_of(self.new_optimizers) if self.steps == 1 else ()
        slots = [
            VariableValue(record.number, change_of(record))
            for record in records
            if record.number in numbers
            if record.maker is Owner.OPTIMIZER and record.variable.shape.rank
        ]
        self.context.emit(
            StepEnded(
                number=self.steps,
                values=values,
                initial_values=initial or self.initial_values(trained),
                optimizer_values=tuple(slots),
                diverged_copies=self.variables.diverged_copies(),
                training=self.training,
            )
        )

    def initial_values(self, trained: list[Record]) -> tuple[VariableValue, ...]:
        values = self.values_before(trained).items()
        return tuple(VariableValue(number, value) for number, value in values if value.entries)

    def values_before(self, trained: list[Record]) -> dict[int, Sample]:
        """Returns the values of trained variables before the first step of this training."""
        if self.training > 1:
            return self.optimizers.values_before(self.new_optimizers)
        return {record.number: record.first for record in trained if record.first}

    # Data

    def distributed(self, dataset: Any, call: Call) -> None:
        size = self.size_of(call["dataset"])
        if size:
            self.sizes[dataset] = size
        self.distributed_sizes.add(size)
        self.watch_batches(dataset)

    def distributed_from_function(self, dataset: Any, call: Call) -> None:
        if self.is_first_here("dataset function"):
            self.context.emit(DatasetFromFunction(self.stack()))
        self.watch_batches(dataset)

    def watch_batches(self, dataset: Any) -> None:
        """Reports batches where the program takes them one by one."""
        if self.context.is_first("dataset", type(dataset)):
            self.context.patches.wrap(type(dataset), "__iter__", after=self.iterated)

    def size_of(self, dataset: Any) -> int:
        """Returns the size of a dataset's batches; 0 if that is not known, or if they are changed after they are made."""
        while (size := self.sizes.get(dataset)) is None:
            inputs = tf_internals.read(dataset, "_inputs")()
            if len(inputs) != 1 or type(dataset).__name__.strip("_") not in SAME_BATCHES:
                return 0
            (dataset,) = inputs
        return size

    def iterated(self, iterator: Any, call: Call) -> None:
        import tensorflow as tf

        self.context.count("distributed iterators")
        size = self.sizes.get(call.owner) or 0
        if size or tf.executing_eagerly():  # what a graph iterates over may be its argument
            self.iterated_sizes.add(size)
        kind = defining_class(type(iterator), "get_next")
        if self.context.is_first("iterator", kind):
            self.context.patches.wrap(
                kind,
                "get_next",
                before=self.counts.wait_begins,
                after=self.batch_taken,
                group="input",
            )

    def batch_taken(self, batch: Any, call: Call) -> None:
        import tensorflow as tf

        self.counts.waited(batch, call)
        shapes = [part.shape for part in copies_of(tf.nest.flatten(batch)[0])]
        known = all(shape.rank and shape[0] is not None for shape in shapes)
        self.batch_sizes = (
            tuple(int(shape[0]) for shape in shapes) if known else self.sizes_in_graph(len(shapes))
        )
        if self.batch_sizes and self.context.is_first("batch", self.batch_sizes):
            self.context.emit(BatchTaken(self.stack(), self.batch_sizes))

    def sizes_in_graph(self, replicas: int) -> tuple[int, ...]:
        """Returns the sizes of the parts that a graph takes, whose shapes do not say them; nothing if several are possible.

        Iterators and datasets that a graph gets as arguments are other objects in it.
        """
        sizes = self.iterated_sizes or self.distributed_sizes
        size = next(iter(sizes)) if len(sizes) == 1 else 0
        return (size // replicas,) * replicas if size and size % replicas == 0 else ()

    def batched(self, dataset: Any, call: Call) -> None:
        size = call["batch_size"]
        if isinstance(size, int):
            self.sizes[dataset] = size
        if isinstance(size, int) and self.is_first_here("batched", size):
            self.context.emit(DatasetBatched(self.stack(), size))

    def skipped(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        is_known = tf.executing_eagerly() or isinstance(call["count"], int)
        count = int(call["count"]) if is_known else 0
        if count and self.is_first_here("skipped"):
            self.context.emit(ExamplesSkipped(self.stack(), count))

    def sharded(self, _: Any, call: Call) -> None:
        shards, index = call["num_shards"], call["index"]
        is_known = isinstance(shards, int) and isinstance(index, int)
        if is_known and self.is_first_here("sharded", int(shards), int(index)):
            self.context.emit(DatasetSharded(self.stack(), int(shards), int(index)))

    def reduced(self, result: Any, call: Call) -> None:
        """Reports a mean over replicas of numbers that they returned in a step, but not Keras's own in `fit`."""
        import tensorflow as tf

        site, owner = self.context.provenance.call_site()
        value = call["value"]
        if owner is not Owner.USER or "MEAN" not in str(call["reduce_op"]).upper():
            return
        if hasattr(result, "numpy"):
            self.counts.means[result] = self.stack()
        if call["axis"] is not None or not any(value is each for each in self.run_result):
            return
        parts, stack = copies_of(value), self.stack()
        if len(parts) < 2 or not all(part.shape.rank == 0 for part in parts):
            return
        if all(hasattr(part, "numpy") for part in parts):
            self.report_mean(stack, *parts)
        elif self.context.settings.tell:
            report = functools.partial(self.context.guard, self.report_mean, stack)
            tf.py_function(report, parts, [])
        elif self.context.is_first("reduced", site):
            self.context.emit(MeanReduced(stack, (), ()))

    def report_mean(self, stack: Stack, *parts: Any) -> None:
        sizes = self.batch_sizes
        if len(sizes) == len(parts) and len(set(sizes)) > 1:
            values = tuple(float(part) for part in parts)
            if self.context.is_first("reduced", stack, sizes):
                self.context.emit(MeanReduced(stack, sizes, values))

    def stack(self) -> Stack:
        return self.context.provenance.stack()

    def is_first_here(self, *key: Any) -> bool:
        """Returns whether this key is new on this line of the program."""
        return self.context.is_first(*key, self.context.provenance.call_site()[0])


def arguments_of(call: Call) -> Any:
    """Returns what a step is given: by `strategy.run`, or as a traced function."""
    arguments = call.bound.arguments
    given = "fn" in arguments
    return (arguments["args"], arguments["kwargs"]) if given else (call.args[1:], call.kwargs)


def change_of(record: Record) -> Sample:
    """Returns by how much a variable differs from its first value: some slots do not begin at 0."""
    value, first = sample_of(record), record.first
    if first is None or len(first.entries) != len(value.entries):
        return value
    return replace(value, entries=tuple(b - a for a, b in zip(first.entries, value.entries)))


def shared_size(value: Any) -> int | None:
    """Returns the examples in a value that all replicas get; 0 if it has none; None for what is distributed or unknown."""
    import numpy as np
    import tensorflow as tf

    parts = copies_of(value)
    if not all(isinstance(part, (tf.Tensor, np.ndarray, np.generic)) for part in parts):
        # A model, an optimizer or a function may be given, too. What gives examples when it is asked may be distributed.
        is_source = any(hasattr(value, name) for name in ("element_spec", "get_next", "__next__"))
        return None if is_source or len(parts) > 1 and not hasattr(value, "assign") else 0
    if len(parts) > 1 and not (type(value).__name__ == "Mirrored" or are_equal(parts)):
        return None
    if getattr(getattr(value, "op", None), "type", "") in CONSTANTS:
        return 0
    shape: Any = tf.TensorShape(parts[0].shape)
    size: int | None = shape[0] if shape.rank else shape.rank  # None where it is not known
    return size


def is_in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def function_of(call: Call) -> Any:
    """Returns what is called: by `strategy.run`, or the traced function itself."""
    return call.bound.arguments.get("fn", call.owner)


def are_equal(parts: list[Any]) -> bool:
    """Tells whether all replicas have the same array; parts in a graph have no values."""
    import numpy as np

    if not all(hasattr(part, "numpy") for part in parts):
        return False
    return all(np.array_equal(parts[0].numpy(), part.numpy()) for part in parts[1:])


def outside_replicas() -> bool:
    import tensorflow as tf

    return bool(not is_in_replica() and tf.executing_eagerly())
