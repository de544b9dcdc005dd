"""Counts what decides about speed and memory: bytes on each device, steps in a call, reads on the host, waiting for input."""

from __future__ import annotations

import contextlib
import itertools
import operator
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ..base import tf_internals
from .activations import ActivationCounts
from .context import Context
from .events import (
    DeviceBytes,
    ExamplesSkipped,
    GeneratorRead,
    HostReads,
    NumbersRead,
    Owner,
    RunEager,
    Stack,
    StepsCounted,
)
from .identity_map import IdentityMap
from .optimizers import Optimizers
from .patching import Call
from .provenance import CallSite, outer_frame
from .variables import Variables

MOST_LOOKS = 3  # at the variables: after these steps optimizers have their slots
MOST_LINES = 3
MOST_NUMBERS, MOST_SITES = 30, 60  # that are read on one line, and lines
# What gives the program the value of a tensor. `print` and f-strings call the last three.
READS = (
    "numpy", "__array__", "__float__", "__int__", "__index__", "__bool__",
    "__str__", "__repr__", "__format__",
)  # fmt: skip


class Stopwatch:
    """Measures how long a generator runs. Nothing of it is on the stack while the generator does."""

    def __init__(self, running: Counter[str]) -> None:
        self.running, self.began, self.seconds, self.elements = running, 0.0, 0.0, 0

    def begin(self) -> Stopwatch:
        self.running["now"] += 1
        self.running["most"] = max(self.running["most"], self.running["now"])
        self.began = time.perf_counter()
        return self

    def end(self) -> Stopwatch:
        self.stop()
        self.elements += 1
        return self

    def stop(self) -> None:
        self.seconds += time.perf_counter() - self.began
        self.running["now"] -= 1

    def around(self, elements: Any) -> Iterator[Any]:
        """Returns the same elements. `zip` and `map` are no Python frames, which an error's traceback would show."""
        and_stop = itertools.chain(elements, iter(self.stop, None))  # once there are no more
        timed = zip(iter(self.begin, None), and_stop, iter(self.end, None))
        return map(operator.itemgetter(1), timed)


class Generators:
    """The generators that one line of the program gave to `from_generator`."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.running = stack, Counter[str]()
        self.watches: list[Stopwatch] = []

    def timed(self, generator: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that calls `generator`, and measures how long what it returns runs."""

        def generate(*args: Any) -> Any:
            self.watches.append(Stopwatch(self.running))
            return self.watches[-1].around(generator(*args))

        return generate

    def total(self) -> tuple[float, int]:
        watches = list(self.watches)
        return sum(each.seconds for each in watches), sum(each.elements for each in watches)


class Moment:
    """What was known after a step."""

    def __init__(self, counts: Counts) -> None:
        self.time, self.waited = time.perf_counter(), counts.waited_for
        self.waits = counts.waits
        self.reads = counts.reads.copy()
        self.totals = [each.total() for each in counts.generators]


class Counts:
    def __init__(self, context: Context, variables: Variables, optimizers: Optimizers) -> None:
        self.context, self.variables, self.optimizers = context, variables, optimizers
        self.training: weakref.WeakSet[Any] = weakref.WeakSet()  # traced functions that train
        self.applied: tuple[int, int] = (0, 0)  # eagerly and in graphs, before the last step
        self.eager_runs: Counter[CallSite | None] = Counter()
        self.eager_at: dict[CallSite | None, tuple[Stack, int]] = {}
        self.eager_by_choice = False
        self.graph_calls = self.traces = 0
        self.reads: Counter[CallSite] = Counter()
        self.read_at: dict[CallSite, Stack] = {}
        self.numbers: dict[CallSite, list[float]] = {}  # that were read there
        self.means: IdentityMap[Stack] = IdentityMap()  # over replicas, by where they were computed
        self.means_read: dict[CallSite, Stack] = {}
        self.generators: list[Generators] = []
        self.waited_for, self.waits = 0.0, 0
        self.taken, self.taken_from = 0, 0  # elements since the last step, and of which iterator
        self.first: Moment | None = None  # after the first step that trains, which traces
        self.last: Moment | None = None
        self.steps = 0  # after the first
        self.held: tuple[DeviceBytes, ...] = ()
        self.looks = 0
        self.activations = ActivationCounts(context)

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        tensor = tf_internals.read(tf_internals.ops, "_EagerTensorBase")
        for name in READS:
            wrap(tensor, name, before=self.value_read)
        wrap(tf.data.Dataset, "from_generator", before=self.generator_given)
        iterator = tf_internals.iterator_ops.OwnedIterator
        wrap(iterator, "__init__", after=self.iterator_made)
        wrap(iterator, "__next__", before=self.wait_begins, after=self.waited, group="input")
        if not self.context.settings.uncounted:
            self.activations.watch()

    def iterator_made(self, _: Any, call: Call) -> None:
        self.context.count("iterators")

    # Steps

    def step_ended(self, call: Call) -> bool:
        """Counts a call of `strategy.run` or of a traced function from outside, if it trains, and returns whether it does."""
        import tensorflow as tf

        if self.taken > 1 and self.context.is_first("taken without a step"):
            stack = self.context.provenance.stack()
            self.context.emit(ExamplesSkipped(stack, self.taken - 1))
        self.taken = 0
        counts, owner = self.context.counts, call.owner
        is_run = isinstance(owner, tf.distribute.Strategy)
        function = call["fn"] if is_run else owner  # `run` calls a traced function as a graph
        eagerly, in_graph = counts["applied", "eagerly"], counts["applied", "in a graph"]
        (eager_before, graph_before), self.applied = self.applied, (eagerly, in_graph)
        self.context.guard_always(self.activations.step_ended, in_graph > graph_before)
        if in_graph > graph_before:
            self.traces += 1
            with contextlib.suppress(TypeError):  # of a callable that nothing can refer to weakly
                self.training.add(function)
        if is_run and eagerly > eager_before and tf.executing_eagerly():
            self.count_eager_run(owner)
        elif function in self.training:
            self.graph_calls += 1
        else:
            return False
        self.look()
        moment = Moment(self)
        self.steps += self.first is not None
        self.first, self.last = self.first or moment, moment
        return True

    def count_eager_run(self, strategy: Any) -> None:
        import tensorflow as tf

        provenance = self.context.provenance
        site, owner = provenance.call_site()
        self.eager_runs[site] += 1
        # `run_eagerly=True` of Keras lets Keras make this call.
        if owner is not Owner.USER or tf.config.functions_run_eagerly():
            self.eager_by_choice = True
        if site not in self.eager_at:
            self.eager_at[site] = provenance.stack(), int(strategy.num_replicas_in_sync)

    def look(self) -> None:
        """Keeps the most bytes that variables have had after one of the first steps."""
        if self.looks < MOST_LOOKS:
            self.looks += 1
            self.keep_most(self.variables.bytes_by_device())

    def keep_most(self, found: tuple[DeviceBytes, ...]) -> None:
        self.held = max(self.held, found, key=total_bytes)

    # Values that are read on the host

    def value_read(self, call: Call) -> None:
        """Counts a read by a line of the program, also one through a method of another class."""
        frame = outer_frame()
        while frame is not None and frame.f_code.co_name in READS:
            frame = frame.f_back
        if frame is None or not self.context.provenance.origin_of(frame.f_code.co_filename)[0]:
            return
        site = frame.f_code.co_filename, frame.f_lineno
        self.reads[site] += 1
        if site not in self.read_at:
            self.read_at[site] = self.context.provenance.stack()
        self.number_read(site, call.owner)

    def number_read(self, site: CallSite, tensor: Any) -> None:
        numbers = self.numbers.setdefault(site, [])
        is_number = tensor.shape.rank == 0 and (tensor.dtype.is_floating or tensor.dtype.is_integer)
        if is_number and len(numbers) < MOST_NUMBERS and len(self.numbers) <= MOST_SITES:
            numbers.append(float(tensor.numpy()))
            self.means_read.setdefault(site, self.means.get(tensor) or ())

    # Input

    def wait_begins(self, call: Call) -> None:
        call.state = time.perf_counter()

    def waited(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        if call.state and tf.executing_eagerly():
            self.waits += 1
            self.waited_for += time.perf_counter() - call.state
            before, self.taken_from = self.taken_from, self.context.serial(call.owner)
            self.taken = self.taken + 1 if self.taken_from == before else 1

    def generator_given(self, call: Call) -> None:
        generator = call["generator"]
        if callable(generator):  # TensorFlow refuses anything else
            given = Generators(self.context.provenance.stack())
            self.generators.append(given)
            call.replace("generator", given.timed(generator))

    # The end

    def report(self) -> None:
        self.report_numbers()
        self.keep_most(self.variables.bytes_by_device())
        if not self.held and self.first is None:
            return
        for site, (stack, replicas) in self.eager_at.items():
            calls = self.eager_runs[site]
            self.context.emit(RunEager(stack, calls, replicas, self.eager_by_choice))
        self.report_generators()
        first, last = self.first, self.last
        reads = last.reads - first.reads if first and last else Counter[CallSite]()
        self.context.emit(
            StepsCounted(
                updates=self.optimizers.updates(),
                eager_runs=sum(self.eager_runs.values()),
                graph_calls=self.graph_calls,
                traces=self.traces,
                reads=tuple(
                    HostReads(self.read_at[site], times)
                    for site, times in reads.most_common(MOST_LINES)
                ),
                read=sum(reads.values()),
                input_share=self.input_share(),
                held=self.held,
                activations=self.activations.most,
            )
        )

    def report_numbers(self) -> None:
        for site, numbers in self.numbers.items():
            if numbers:
                event = NumbersRead(
                    self.read_at[site], self.reads[site], tuple(numbers), self.means_read[site]
                )
                self.context.emit(event)

    def report_generators(self) -> None:
        """Reports generators that the program read between its first and its last step."""
        first, last = self.first, self.last
        if first is None or last is None:
            return
        for i, each in enumerate(self.generators[: len(first.totals)]):
            (before, some), (after, all_of_them) = first.totals[i], last.totals[i]
            share = self.share(before, after)
            if share is not None and all_of_them > some:
                self.context.emit(
                    GeneratorRead(
                        location=each.stack,
                        elements=all_of_them - some,
                        steps=self.steps,
                        seconds=round(after - before, 3),
                        share=share,
                        at_once=each.running["most"],
                    )
                )

    def input_share(self) -> float | None:
        """Returns the share of waiting for a batch; None where no loop of Python took one, as in a graph."""
        first, last = self.first, self.last
        if first is None or last is None or first.waits == last.waits:
            return None
        return self.share(first.waited, last.waited)

    def share(self, before: float, after: float) -> float | None:
        """Returns how much of the time between the first and the last step some seconds are."""
        if self.first is None or self.last is None or self.last is self.first:
            return None
        return round((after - before) / (self.last.time - self.first.time), 3)


def total_bytes(devices: tuple[DeviceBytes, ...]) -> int:
    return sum(each.weights + each.slots + each.other for each in devices)
