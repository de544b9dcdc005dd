"""Watches what replicas hold: their examples, losses, gradients, what they send, and the variables after each step.

What is computed in a graph is handed out of it by one more operation for each group of tensors, which calls Python. XLA
compiles no such operation: of what it compiles, only the variables are seen.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from ..base import tf_internals
from ..observer.context import Context, flush_output
from ..observer.events import ClusterStrategyRequested, Outcome, Owner, Stack, StrategyMade
from ..observer.identity_map import IdentityMap
from ..observer.own_cluster import arguments_of_tasks
from ..observer.patching import Call, as_plain
from ..observer.replacements import is_drawing
from ..observer.variables import (
    Record,
    Variables,
    arrays_of,
    copies_of,
    is_in_replica,
    is_on_read,
    member,
    replica_now,
)
from .record import END, IN_A_STEP, MOST_LINES, TOGETHER, UNSEEN, Seen, record_file
from .values import value_of, value_of_words

CLUSTERS = {
    "MultiWorkerMirroredStrategy": "multi_worker",
    "ParameterServerStrategy": "parameter_server",
}
ORDERING = "cross_device_utils.py"  # of TensorFlow, whose variables have no values
GENERATOR = "stateful_random_ops.py"  # of TensorFlow, whose variables are states of generators
ITERATORS = "input_lib.py"  # of TensorFlow, which asks all workers whether they have examples left
MOST_BEHIND = 40  # operations behind a loss that are looked at for a line of the program
HOW_IT_ENDED = "printed last, or raised"
MOST_TURNS = 6  # steps that are kept of one call
MOST_NAMED = 120  # variables that are kept of one step
LARGEST = (
    20_000_000  # numbers in all variables: of more than that, only what the step computes is kept
)
OF_XLA = "what a function computes that XLA compiles is not seen, only what it leaves in variables"
TOO_LARGE = f"the variables have more than {LARGEST:,} numbers, and are not read after a step"
TOO_MANY = f"only the first {MOST_NAMED} variables are read after a step"
Named = list[tuple[str, Any]]


class Known(Variables):
    """The program's variables, and where each is made; their reads and writes are not watched."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.lines: dict[int, Stack] = {}
        self.paths: dict[int, str] = {}  # names that Keras 3 gives, by number
        self.names: dict[int, str] = {}
        self.alike: Counter[str] = Counter()
        self.inner: set[int] = set()
        self.generators: set[int] = set()

    def watch(self) -> None:
        wrap = self.context.patches.wrap
        wrap(tf_internals.resource_variables.BaseResourceVariable, "__init__", after=self.made)
        wrap(tf_internals.values.DistributedVariable, "__init__", after=self.distributed_made)
        for kind in (
            tf_internals.ps_values.AggregatingVariable,
            tf_internals.ps_values.CachingVariable,
        ):
            wrap(kind, "__init__", after=self.wrapper_made)

    def emit_made(
        self, record: Record, variable: Any, copies: int, parts: tuple[int, ...] = ()
    ) -> None:
        self.lines[record.number] = self.context.provenance.stack()
        if is_made_in(ORDERING):
            self.inner.add(record.number)
        if is_made_in(GENERATOR):
            self.generators.add(record.number)

    def shown(self) -> list[Record]:
        """Returns the records of all variables but those by which TensorFlow orders what replicas add up."""
        records = sorted(self.alive(), key=lambda each: each.number)
        return [each for each in records if each.number not in self.inner]

    def name_of(self, record: Record) -> str:
        """Returns a name that no other variable has; two runs of a program give the same ones."""
        number = record.number
        if number not in self.names:
            plain = self.paths.get(number) or str(record.variable.name).split(":")[0]
            self.alike[plain] += 1
            same = self.alike[plain]
            self.names[number] = plain if same == 1 else f"{plain} ({same})"
        return self.names[number]


class Watch:
    """Keeps what is seen of a step until the next one begins, since a program may reduce in between what it returned."""

    def __init__(self, context: Context, steps: int, end: Callable[[Outcome, int], None]) -> None:
        self.context, self.most, self.end = context, steps, end
        self.variables = Known(context)
        self.lock = threading.RLock()
        self.step, self.lines = 0, 0
        self.pending: list[Seen] = []
        self.turns: Counter[Any] = Counter()  # of this step
        self.sites: IdentityMap[Counter[Any]] = IdentityMap()  # of each graph
        self.trained: set[int] = set()
        self.gradients: list[tuple[str, Any]] = []  # names and shapes of the last ones
        self.before: dict[int, list[Any]] = {}  # the variables' values, by number
        self.running = self.is_made = self.is_reducing = False
        self.compiled = 0  # functions of XLA that are being called

    def watch_tensorflow(self) -> None:
        import tensorflow as tf

        self.context.provenance.watch(self.context.patches)
        self.variables.watch()
        wrap, distribute = self.context.patches.wrap, tf.distribute
        function = type(tf.function(lambda: None))
        wrap(distribute.Strategy, "__init__", after=self.strategy_made)
        for kind, name in CLUSTERS.items():
            handler = functools.partial(self.cluster_requested, name)
            wrap(getattr(distribute, kind), "__init__", before=handler)
        wrap(
            distribute.Strategy, "run", before=self.run_begins, after=self.step_ended, group="step"
        )
        wrap(distribute.Strategy, "run", after=self.returned, group="run")
        wrap(distribute.Strategy, "reduce", after=self.reported)
        wrap(distribute.Strategy, "gather", after=self.reported)
        wrap(function, "__call__", before=self.step_begins, after=self.step_ended, group="step")
        wrap(function, "__call__", before=self.compilation_begins, after=self.compilation_ended)
        wrap(tf.GradientTape, "gradient", before=self.loss_given, after=self.differentiated)
        wrap(distribute.ReplicaContext, "all_reduce", before=self.sent, after=self.received)
        extended = distribute.StrategyExtended
        for name in ("reduce_to", "batch_reduce_to"):
            wrap(extended, name, before=self.reduce_begins, after=self.reduced)
        self.watch_drawing()

    def watch_drawing(self) -> None:
        for module in (
            tf_internals.random_ops,
            tf_internals.stateful_random_ops,
            tf_internals.stateless_random_ops,
            tf_internals.stateless_random_ops_v2,
        ):
            for name in [name for name in vars(module) if is_drawing(name)]:
                plain = vars(module)[name]
                self.context.patches.replace(
                    module, name, as_plain(self.drawing(plain, name), plain)
                )

    def drawing(self, plain: Any, name: str) -> Any:
        def draw(*args: Any, **kwargs: Any) -> Any:
            drawn = plain(*args, **kwargs)
            self.context.guard(self.drawn, name, drawn)
            return drawn

        return draw

    def watch_keras(self, keras: Any) -> None:
        kind = keras.optimizers.Optimizer
        name = "apply" if hasattr(kind, "apply") else "apply_gradients"
        listed = "grads" if name == "apply" else "grads_and_vars"
        self.context.patches.wrap(kind, name, after=self.step_ended, group="step", listed=listed)

    # Strategies

    def strategy_made(self, _: Any, call: Call) -> None:
        name = type(call.owner).__name__
        if not name.startswith("_"):
            stack, replicas = self.context.provenance.stack(), call.owner.num_replicas_in_sync
            self.context.emit(StrategyMade(stack, name, int(replicas)))

    def cluster_requested(self, name: str, _: Call) -> None:
        config = os.environ.get("TF_CONFIG", "")
        self.context.emit(ClusterStrategyRequested(self.context.provenance.stack(), name, config))
        if not self.context.settings.stay and arguments_of_tasks(config, sys.argv[1:]):
            self.end(Outcome.STOPPED, 0)
            leave(stays=False)

    # Steps

    def step_begins(self, call: Call) -> None:
        if "step" not in self.context.patches.thread.groups and outside_replicas():
            self.begin()

    def compilation_begins(self, call: Call) -> None:
        self.compiled += is_compiled(call.owner)

    def compilation_ended(self, result: Any, call: Call) -> None:
        self.compiled -= is_compiled(call.owner)

    def begin(self) -> None:
        if self.step >= self.most:
            self.end(Outcome.STOPPED, 0)
            leave(self.context.settings.stay)
        self.flush()
        self.running = True
        if not self.before:
            self.look("start")

    def run_begins(self, call: Call) -> None:
        import tensorflow as tf

        self.step_begins(call)
        self.context.provenance.replicas_run(self.context.provenance.stack())
        replicas = replicas_here(call.owner)
        given = tf.nest.flatten((call["args"], call["kwargs"]), expand_composites=False)
        parts = [parts_of(each, replicas) for each in given]
        parts = [each for each in parts if each]
        for replica in range(max(map(len, parts), default=0)):
            named = [(f"argument {i + 1}", each[replica]) for i, each in enumerate(parts)]
            self.see("examples", named, replica)

    def step_ended(self, result: Any, call: Call) -> None:
        if not outside_replicas():
            return
        if any(each.stage in OF_A_STEP for each in self.pending) or self.has_changed():
            self.look("end")
            self.step, self.is_made = self.step + 1, True
        self.running = False

    def finish(self, outcome: Outcome, words: str, lines: Stack) -> None:
        """Writes what an exception left of the last step, and below it how the program ended."""
        how = IN_A_STEP if outcome is Outcome.RAISED and self.running else ""
        self.is_made = self.is_made or bool(how)
        self.flush()
        if words:
            value = value_of_words(words)
            end = Seen(END, 0, "end", HOW_IT_ENDED, TOGETHER, value, how, lines=lines)
            self.pending, self.is_made = [end], True
            self.flush()

    def flush(self) -> None:
        """Writes what is known of the last step; what comes before the first one stays until then."""
        if not self.is_made:
            return
        with self.lock:
            pending, self.pending, self.is_made = self.pending, [], False
            self.turns.clear()
        self.lines += len(pending)
        if self.lines > MOST_LINES:
            return
        with open(record_file(self.context.events), "a") as file:
            file.writelines(f"{each.to_json()}\n" for each in pending)

    # Inside of a step

    def loss_given(self, call: Call) -> None:
        import tensorflow as tf

        if not self.running and outside_replicas():
            self.begin()
        targets = [each for each in tf.nest.flatten(call["target"]) if each is not None]
        names = ["loss"] if len(targets) == 1 else [f"loss {i + 1}" for i in range(len(targets))]
        self.see("loss", list(zip(names, targets)), replica_here(), lines=self.lines_of(targets))

    def lines_of(self, losses: list[Any]) -> Stack:
        """Returns the program's lines that compute a loss, as far as a graph tells them; else those that are running."""
        here, waiting = self.context.provenance.stack(), list(losses)
        for tensor in itertools.islice(waiting, MOST_BEHIND):  # which grows
            found = self.context.provenance.stack_of(tensor.op) if is_symbolic(tensor) else ()
            if found and found[:1] != here[:1]:
                return found
            if found and tensor.shape.rank == 0:
                waiting += tensor.op.inputs
        return here

    def differentiated(self, result: Any, call: Call) -> None:
        import tensorflow as tf

        sources, gradients = tf.nest.flatten(call["sources"]), tf.nest.flatten(result)
        named = [
            (self.name_of_source(source, i), gradient)
            for i, (source, gradient) in enumerate(zip(sources, gradients))
            if gradient is not None
        ]
        self.gradients = [(name, tuple(gradient.shape)) for name, gradient in named]
        self.see("gradient", named, replica_here())

    def name_of_source(self, source: Any, place: int) -> str:
        record = self.variables.record_of(source) or self.variables.record_read_by(source)
        if record is None:
            return f"source {place + 1}"
        path = getattr(source, "path", None)
        if isinstance(path, str):
            self.variables.paths.setdefault(record.number, path)
        self.trained.add(record.number)
        return self.variables.name_of(record)

    def drawn(self, name: str, numbers: Any) -> None:
        if is_in_replica() and numbers.dtype.is_floating:
            self.see("drawn", [(name, numbers)], replica_here())

    # What replicas add up

    def sent(self, call: Call) -> None:
        self.is_reducing = True
        self.see("sent", self.named(call["value"]), replica_here(), how_of(call["reduce_op"]))

    def received(self, result: Any, call: Call) -> None:
        self.is_reducing = False
        how = how_of(call["reduce_op"])
        self.see("aggregated", self.named(result), replica_here(), how)

    def reduce_begins(self, call: Call) -> None:
        call.state = self.running and not self.is_reducing
        if call.state:
            self.see_parts("sent", self.reduced_values(call), how_of(call["reduce_op"]))

    def reduced(self, result: Any, call: Call) -> None:
        if call.state:
            results = (
                list(result) if "value_destination_pairs" in call.bound.arguments else [result]
            )
            self.see_parts("aggregated", results, how_of(call["reduce_op"]))

    def reduced_values(self, call: Call) -> list[Any]:
        pairs = call.bound.arguments.get("value_destination_pairs")
        return [value for value, _ in pairs] if pairs is not None else [call["value"]]

    def see_parts(self, stage: str, values: list[Any], how: str) -> None:
        parts = [copies_of(value) for value in values]
        for replica in range(max(map(len, parts), default=0)):
            own = [each[replica] for each in parts if len(each) > replica]
            self.see(stage, self.named(own), replica, how)

    def named(self, values: Any) -> Named:
        """Returns values with the names of the gradients that they stand for, if they have these shapes, or with numbers."""
        import tensorflow as tf

        flat = [each for each in tf.nest.flatten(values) if each is not None]
        shapes = [tuple(each.shape) for each in flat]
        if shapes == [shape for _, shape in self.gradients]:
            return [(name, each) for (name, _), each in zip(self.gradients, flat)]
        return [(f"value {i + 1}", each) for i, each in enumerate(flat)]

    def returned(self, result: Any, call: Call) -> None:
        """Keeps what each replica returns to the program, and not to Keras."""
        import tensorflow as tf

        if self.context.provenance.call_site()[1] is not Owner.USER:
            return
        replicas = replicas_here(call.owner)
        parts = [parts_of(each, replicas) for each in tf.nest.flatten(result)]
        for replica in range(replicas):
            named = [(f"result {i + 1}", each[replica]) for i, each in enumerate(parts) if each]
            self.see("returned", named, replica)

    def reported(self, result: Any, call: Call) -> None:
        """Keeps what the program, and not Keras, gets of all replicas."""
        import tensorflow as tf

        if self.context.provenance.call_site()[1] is not Owner.USER or is_made_in(ITERATORS):
            return
        how = how_of(call.bound.arguments.get("reduce_op", "gather"))
        named = [(f"result {i + 1}", each) for i, each in enumerate(tf.nest.flatten(result))]
        self.see("reported", named, TOGETHER, how)

    # Variables

    def has_changed(self) -> bool:
        """Tells whether a variable has changed, as in a function that XLA has compiled."""
        import numpy as np

        known = [each for each in self.variables.shown() if each.number in self.before]
        return any(
            not all(map(np.array_equal, self.before[each.number], arrays_of(each.variable)))
            for each in known
        )

    def look(self, when: str) -> None:
        """Keeps the values of variables, and before the first step those that it begins with."""
        records = self.variables.shown()
        if sum(size_of(each) for each in records) > LARGEST:
            return self.leave_out(TOO_LARGE)
        if len(records) > MOST_NAMED:
            self.leave_out(TOO_MANY)
        for record in records[:MOST_NAMED]:
            self.context.guard_always(self.look_at, record, when)

    def look_at(self, record: Record, when: str) -> None:
        variable = record.variable
        arrays = arrays_of(variable)
        before, self.before[record.number] = self.before.get(record.number), arrays
        kind = self.stage_of(record)
        how = member(variable, "aggregation") if is_on_read(variable) else ""
        if when == "start" and kind != "random":
            return self.keep_copies("start", record, arrays, how)
        if (
            kind == "variable"
            and before
            and all(a.shape == b.shape for a, b in zip(before, arrays))
        ):
            self.keep_copies("update", record, [b - a for a, b in zip(before, arrays)], how)
        self.keep_copies(kind, record, arrays, how)

    def stage_of(self, record: Record) -> str:
        if record.number in self.variables.generators:
            return "random"
        if record.number in self.trained:
            return "variable"
        if record.maker is Owner.OPTIMIZER and not record.variable.shape.rank:
            return "counter" if record.variable.dtype.is_integer else "setting"
        return STAGES_OF_MAKERS.get(record.maker, "state")

    def keep_copies(self, stage: str, record: Record, arrays: list[Any], how: str) -> None:
        name, lines = self.variables.name_of(record), self.variables.lines.get(record.number, ())
        for copy, array in enumerate(arrays):
            self.keep(Site(stage, (name,), copy, how, lines), 0, array)

    # Values

    def see(self, stage: str, named: Named, replica: int, how: str = "", lines: Stack = ()) -> None:
        """Keeps tensors now, or whenever the graph computes them that is being made."""
        import tensorflow as tf

        shown = [(name, tf.convert_to_tensor(each)) for name, each in named if is_shown(each)]
        if not shown:
            return
        if self.compiled and not tf.executing_eagerly():
            return self.leave_out(OF_XLA)
        eager, lines = tf.executing_eagerly(), lines or self.context.provenance.stack()
        counts = self.turns if eager else self.sites.setdefault(shown[0][1].graph, Counter)
        names = numbered([name for name, _ in shown], counts, (stage, replica, lines[:1]))
        site = Site(stage, tuple(names), replica, how, lines)
        tensors = [each for _, each in shown]
        if eager:
            return self.keep(site, 0, *[each.numpy() for each in tensors])

        def keep(*arrays: Any) -> None:
            self.context.guard_always(self.keep_turn, site, key, *arrays)

        key = object()
        tf.numpy_function(keep, tensors, [])

    def leave_out(self, why: str) -> None:
        if self.context.is_first("left out", why):
            with self.lock:
                self.pending.append(Seen(1, 0, UNSEEN, why, 0, value_of(0.0)))

    def keep_turn(self, site: Site, key: object, *arrays: Any) -> None:
        """Keeps what a graph has computed, which may make several steps in one call."""
        with self.lock:
            turn = self.turns[key]
            self.turns[key] += 1
        if site.replica < 0 and site.replica != TOGETHER:  # a TPU's step is traced once for all
            turn, replica = divmod(turn, -site.replica)
            site = replace(site, replica=replica)
        if turn < MOST_TURNS:
            self.keep(site, turn, *arrays)

    def keep(self, site: Site, turn: int, *arrays: Any) -> None:
        step = self.step + (self.running or not self.step)
        for name, array in zip(site.names, arrays):
            plain = array.sum() if site.stage == "loss" else array  # as `gradient` does
            value = value_of(plain, with_rows=site.stage == "examples")
            seen = Seen(step, turn, site.stage, name, site.replica, value, site.how, site.lines)
            with self.lock:
                self.pending.append(seen)


@dataclass(frozen=True)
class Site:
    """Where tensors are seen: in a graph, once for all times that it is run."""

    stage: str
    names: tuple[str, ...]
    replica: int
    how: str = ""
    lines: Stack = ()


def numbered(names: list[str], counts: Counter[Any], place: Any) -> list[str]:
    """Returns names that are new in this place: a loop of Python comes to one line several times in a step."""
    key = (*names, *place)
    counts[key] += 1
    return names if counts[key] == 1 else [f"{name} ({counts[key]})" for name in names]


OF_A_STEP = {
    "examples",
    "loss",
    "gradient",
    "sent",
    "drawn",
    "returned",
}  # stages; other calls are no steps
STAGES_OF_MAKERS = {Owner.OPTIMIZER: "slot", Owner.METRIC: "metric", Owner.RANDOM: "random"}


def replica_here() -> int:
    """Returns the number of this replica, 0 outside of replicas; where one graph is made for all, minus their count."""
    import tensorflow as tf

    number = replica_now()
    if number is None and is_in_replica():
        count = int(tf.distribute.get_strategy().num_replicas_in_sync)
        return -count if count > 1 else 0
    return number or 0


def is_made_in(file: str) -> bool:
    """Tells whether a file of a library led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith(file):
        frame = frame.f_back
    return frame is not None


def outside_replicas() -> bool:
    import tensorflow as tf

    return bool(not is_in_replica() and tf.executing_eagerly())


def is_symbolic(tensor: Any) -> bool:
    import tensorflow as tf

    return tf.is_tensor(tensor) and not isinstance(tensor, tf.__internal__.EagerTensor)


def is_compiled(owner: Any) -> bool:
    """Tells whether a function is one that XLA compiles."""
    return bool(getattr(owner, "_jit_compile", False))


def parts_of(value: Any, replicas: int) -> list[Any]:
    """Returns what each replica is given of an argument; nothing of one that is no tensor."""
    parts = copies_of(value)
    if hasattr(value, "assign") or not all(map(is_shown, parts)):
        return []
    return parts if len(parts) > 1 else parts * replicas


def is_shown(value: Any) -> bool:
    import numpy as np
    import tensorflow as tf

    if isinstance(value, tf.IndexedSlices):
        return True
    is_tensor = isinstance(value, (tf.Tensor, np.ndarray, np.generic, float))
    return is_tensor and getattr(value, "dtype", None) not in (tf.variant, tf.resource)


def how_of(reduce_op: Any) -> str:
    return str(reduce_op).rpartition(".")[2].upper()


def size_of(record: Record) -> int:
    return int((record.variable.shape.num_elements() or 0) if record.variable is not None else 0)


def replicas_here(strategy: Any) -> int:
    """Returns how many replicas this process has: of several workers, each has its part."""
    import tensorflow as tf

    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return len(strategy.extended.worker_devices)
    return int(strategy.num_replicas_in_sync)


def leave(stays: bool) -> None:
    """Ends this process; one of several workers waits to be ended, since another may still add up what it has sent."""
    flush_output()
    if stays:
        threading.Event().wait()
    os._exit(0)
