"""Observes the program's variables: where each is made, by whom it is read and written, and its values."""

from __future__ import annotations

import contextlib
import functools
import math
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import (
    DeviceBytes,
    DivergedCopies,
    LearningRateRead,
    LearningRateWritten,
    Owner,
    Sample,
    VariableMade,
    VariableRead,
    VariableSharedCentrally,
    VariableValue,
    VariableWritten,
)
from .identity_map import IdentityMap
from .patching import Call

MOST_HELD = 3000
ENTRIES = 48  # of a variable that are reported, beside its norm
LEAST_DISTANCE = 1e-5  # of copies that differ
HERE = "/job:localhost/replica:0/task:0/device:"  # what a device's name begins with in one process
NO_STRATEGY = "_DefaultDistributionStrategy"  # the class of what takes its place
UNCHANGED = "Identity", "Cast"  # operations that pass on a value
# As what the bytes of a variable are counted; those of others are weights.
COUNTED_AS = {Owner.OPTIMIZER: "slots", Owner.METRIC: "other", Owner.RANDOM: "other"}


class Record:
    """What is known of one variable as the program has it: a distributed variable is one."""

    def __init__(self, number: int, variable: Any, maker: Owner) -> None:
        self.number, self.maker = number, maker
        self.reference: weakref.ref[Any] = weakref.ref(variable)
        self.trained = self.written = self.read = False
        self.read_since_load = False
        self.has_gradient = False  # the program has asked for one
        self.is_rate = maker is Owner.OPTIMIZER and "learning_rate" in str(variable.name)
        self.first: Sample | None = None  # before the program wrote to it
        self.start: Any = None  # its whole value then, if the program made it itself

    @property
    def variable(self) -> Any:
        return self.reference()


class Variables:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.records: IdentityMap[Record] = IdentityMap()
        self.copies: IdentityMap[Record] = (
            IdentityMap()
        )  # the records of the variables that these are copies of
        self.count = 0
        self.held: dict[int, Any] = {}  # trained variables, whose last values are read at the end
        self.released: dict[int, VariableValue] = {}  # by number
        self.given: Any = None  # the value for the variable of `--give`
        self.something_trained = self.something_loaded = False
        # Told of the values that the program gives to variables before it trains.
        self.set_by_program: Callable[[Record, Any], None] = lambda record, value: None

    def watch(self) -> None:
        ps_values, tpu_values = tf_internals.ps_values, tf_internals.tpu_values
        distributed, resources = tf_internals.values, tf_internals.resource_variables
        wrap = self.context.patches.wrap
        wrap(resources.BaseResourceVariable, "__init__", after=self.made)
        wrap(distributed.DistributedVariable, "__init__", after=self.distributed_made)
        for kind in (ps_values.AggregatingVariable, ps_values.CachingVariable):
            wrap(kind, "__init__", after=self.wrapper_made)
        # A TPU's variables are written to as a whole, past the copies of each core.
        on_tpu = tpu_values.TPUDistributedVariable, tpu_values.TPUMirroredVariable
        for kind in (resources.BaseResourceVariable, resources.ResourceVariable, *on_tpu):
            for name in ("assign", "assign_add", "assign_sub"):
                if name in vars(kind):
                    wrap(kind, name, before=self.written)
        wrap(
            resources.BaseResourceVariable,
            "_read_variable_op",
            before=self.was_read,
            unless=self.is_read_already,
        )

    # Records

    def record_of(self, weight: Any) -> Record | None:
        """Returns the record of a variable, of the variable that this is a copy of, or of what a Keras variable holds."""
        variable = variable_in(weight)
        return self.copies.get(variable) or self.records.get(variable)

    def numbers_of(self, weights: Iterable[Any]) -> tuple[int, ...]:
        records = [self.record_of(weight) for weight in weights]
        return tuple(sorted({record.number for record in records if record}))

    def differentiated(self, sources: Iterable[Any]) -> tuple[int, ...]:
        """Returns the numbers of the variables for which the program has asked for gradients, or for those of their values."""
        records = [self.record_of(source) or self.record_read_by(source) for source in sources]
        known = [record for record in records if record]
        for record in known:
            record.has_gradient = True
        return tuple(sorted({record.number for record in known}))

    def record_read_by(self, tensor: Any) -> Record | None:
        """Returns the record of the variable whose value a tensor of a graph is; None for all other tensors."""
        operation = getattr(tensor, "op", None)
        while operation is not None and operation.type in UNCHANGED:
            operation = operation.inputs[0].op
        if operation is None or operation.type != "ReadVariableOp":
            return None
        return self.record_of_handle(operation.inputs[0])

    def record_of_handle(self, handle: Any) -> Record | None:
        """Returns the record of the variable that a graph reads or writes by this handle."""
        outer = next((o for o, inner in captures_of(handle.graph) if inner is handle), handle)
        for record in self.alive():
            variable = record.variable
            copies = copies_of(variable) if variable is not None else ()
            if any(getattr(copy, "handle", None) is outer for copy in copies):
                return record
        return None

    def alive(self) -> list[Record]:
        """Returns the records of the variables that exist, without those that are copies."""
        return [record for key, record in self.records.items() if self.copies.get(key) is None]

    def numbered(self, numbers: Collection[int]) -> list[Record]:
        """Returns the records of the variables with these numbers, as far as they exist."""
        return [record for record in self.alive() if record.number in numbers]

    def trained_values(self, thing: Any) -> dict[int, Sample]:
        """Returns the values of what is trained of a layer or a model, by the numbers of the variables."""
        return self.values_of(self.numbers_of(thing.trainable_variables))

    def values_of(self, numbers: Collection[int]) -> dict[int, Sample]:
        return {record.number: sample_of(record) for record in self.numbered({*numbers})}

    def hold(self, records: Iterable[Record]) -> None:
        """Keeps trained variables alive: a program that returns from its main function would take its weights along."""
        for record in records:
            if len(self.held) < MOST_HELD:
                self.held[record.number] = record.variable

    def release(self) -> None:
        """Keeps only the values of what was held: a search over models would keep all of them alive."""
        if not self.context.settings.hold:
            self.released.update(values_by_number(self.numbered(self.held)))
            self.held.clear()

    # Values

    def values(self) -> tuple[VariableValue, ...]:
        """Returns samples of all variables that can be read."""
        return tuple(values_by_number(self.alive()).values())

    def last_values(self) -> tuple[VariableValue, ...]:
        """Returns these samples, and those of the variables that were released and are gone."""
        return tuple({**self.released, **values_by_number(self.alive())}.values())

    def bytes_by_device(self) -> tuple[DeviceBytes, ...]:
        """Returns the bytes of all variables, a mirrored one on each of its devices."""
        counts: dict[str, Counter[str]] = {}
        for record in self.alive():
            kind = COUNTED_AS.get(record.maker, "weights")
            with contextlib.suppress(Exception):  # not initialised, or in a graph that is gone
                for copy in copies_of(record.variable):
                    device = str(copy.device).replace(HERE, "")
                    counts.setdefault(device, Counter())[kind] += size_of(copy)
        return tuple(
            DeviceBytes(device, count["weights"], count["slots"], count["other"])
            for device, count in sorted(counts.items())
        )

    def diverged_copies(self) -> tuple[DivergedCopies, ...]:
        """Returns the variables with several copies that must agree and do not."""
        diverged = []
        for record in self.alive():
            variable = record.variable
            if not is_on_read(variable) and len(copies_of(variable)) > 1:
                distance = distance_of_copies(variable)
                if distance > LEAST_DISTANCE:
                    diverged.append(DivergedCopies(record.number, distance, ()))
        return tuple(diverged)

    def carry(self, record: Record) -> None:
        """Keeps the value that a variable has when it is first not saved, for the one that replaces it after loading."""
        if record.number == self.context.settings.give[0] and self.given is None:
            self.given = arrays_of(record.variable)[0]

    # Handlers

    def made(self, _: Any, call: Call) -> None:
        if not type(call.owner).__name__.startswith("_"):  # the value of an assignment in a graph
            self.emit_made(self.new_record(call.owner), call.owner, 0)

    def distributed_made(self, _: Any, call: Call) -> None:
        """Lets a strategy's variable take the place of its copies."""
        copies = list(call.owner.values)
        parts = self.numbers_of(copies)
        record = self.new_record(call.owner)
        for copy in copies:
            self.copies[copy] = record
        self.emit_made(record, call.owner, len(copies), parts)

    def wrapper_made(self, _: Any, call: Call) -> None:
        """Knows a variable also by what central storage and parameter servers give the program for it."""
        record = self.record_of(call.owner.get())
        if record is not None:
            self.copies[call.owner] = record
            self.context.emit(VariableSharedCentrally(record.number))

    def new_record(self, variable: Any) -> Record:
        self.count += 1
        record = Record(self.count, variable, self.context.provenance.call_site()[1])
        self.records[variable] = record
        if self.context.settings.hold and record.maker is Owner.USER:
            self.hold([record])
        return record

    def emit_made(
        self, record: Record, variable: Any, copies: int, parts: tuple[int, ...] = ()
    ) -> None:
        self.context.emit(
            VariableMade(
                location=self.context.provenance.stack(),
                number=record.number,
                name=variable.name.split(":")[0],
                shape=tuple(variable.shape.as_list() if variable.shape.rank is not None else ()),
                dtype=variable.dtype.name,
                maker=record.maker,
                copies=copies,
                parts=parts,
                synchronization=member(variable, "synchronization"),
                aggregation=member(variable, "aggregation"),
            )
        )
        settings = self.context.settings
        if self.given is not None and record.number == settings.give[1]:
            assign(record, self.given)
        if record.number == settings.begin[0]:
            assign(record, full(variable, settings.begin[1]))

    def written(self, call: Call) -> None:
        record = self.record_of(call.owner)
        if record is None:
            return
        site, writer = self.context.provenance.call_site()
        if writer is Owner.TRAINER and record.maker is Owner.USER:
            # All replicas write together, in the thread of `fit`; the lines that do so are in threads of their own.
            writer = Owner.USER
        if writer in (Owner.USER, Owner.OPTIMIZER) and record.first is None:
            record.start = arrays_of(record.variable)[0] if record.maker is Owner.USER else None
            record.first = sample_of(record)
        value = call.bound.arguments.get("value")  # what is added to a variable is none
        if writer is Owner.USER and value is not None and not self.something_trained:
            self.set_by_program(record, value)
        record.written |= writer in (Owner.USER, Owner.OPTIMIZER, Owner.LAYER)
        is_own_update = writer is Owner.USER and record.has_gradient
        if is_own_update:
            self.context.gradients_used()  # without an optimizer, which counts its updates itself
        if is_own_update or writer is Owner.OPTIMIZER:
            record.trained = self.something_trained = True
        if record.is_rate:
            self.rate_written(record, call)
        replicas = replicas_now()
        since = self.something_trained, self.something_loaded
        if self.context.is_first("written", record.number, site, writer, replicas, since):
            stack = self.context.provenance.stack()
            self.context.emit(VariableWritten(stack, record.number, writer, replicas))

    def is_read_already(self, variable: Any) -> bool:
        record = self.copies.get(variable) or self.records.get(variable)
        return record is None or record.read_since_load and not record.is_rate

    def rate_written(self, record: Record, call: Call) -> None:
        """Reports a learning rate that is set outside of graphs to a number."""
        value = call.args[1] if len(call.args) > 1 else next(iter(call.kwargs.values()), None)
        stack = self.context.provenance.stack()
        with contextlib.suppress(TypeError, ValueError, NotImplementedError):  # of a graph
            rate = float(value)  # type: ignore[arg-type]  # a TypeError otherwise
            if self.context.is_first("rate written", record.number, stack, rate):
                self.context.emit(LearningRateWritten(stack, record.number, rate))

    def rate_read(self, record: Record) -> None:
        site, owner = self.context.provenance.call_site()
        if owner is Owner.USER:
            value = float(arrays_of(record.variable)[0])
            if self.context.is_first("rate read", record.number, site, value):
                stack = self.context.provenance.stack()
                self.context.emit(LearningRateRead(stack, record.number, value))

    def was_read(self, call: Call) -> None:
        record = self.record_of(call.owner)
        if record is not None and record.is_rate:
            self.rate_read(record)
        if record is not None and not record.read_since_load:
            record.read = record.read_since_load = True
            self.context.emit(VariableRead(record.number))


def values_by_number(records: Iterable[Record]) -> dict[int, VariableValue]:
    values = {}
    for record in records:
        with contextlib.suppress(Exception):  # not initialised, or in a graph that is gone
            values[record.number] = VariableValue(record.number, sample_of(record))
    return values


def variable_in(weight: Any) -> Any:
    """Returns the tf.Variable in a Keras 3 variable, or in one of mixed precision in Keras 2, or the variable itself."""
    kind: Any = type(weight)
    if is_cast(kind):
        return tf_internals.read(weight, "_variable")
    value = getattr(weight, "value", None)
    return weight if value is None or callable(value) else value


def weights_of(thing: Any) -> list[Any]:
    """Returns the variables of a layer or a model. To its weights tf_keras counts a vocabulary, which has no shape."""
    try:
        return [weight for weight in thing.weights if hasattr(weight, "shape")]
    except ValueError:
        return []  # tf_keras: a model that has made none yet


@functools.cache
def is_cast(kind: Any) -> bool:
    return any(base.__name__ == "AutoCastVariable" for base in kind.__mro__)


def member(variable: Any, name: str) -> str:
    """Returns the name of the member that an attribute has of an enumeration; nothing without that attribute."""
    return str(getattr(variable, name, "")).rpartition(".")[2]


def is_on_read(variable: Any) -> bool:
    """Tells whether each replica has a value of its own, and whoever reads the variable gets their sum or mean."""
    return member(variable, "synchronization") == "ON_READ"


def copies_of(value: Any) -> list[Any]:
    """Returns what each device has of a variable or of a value; one that is not distributed is its only copy."""
    return list(value.values) if hasattr(type(value), "values") else [value]


def captures_of(graph: Any) -> list[tuple[Any, Any]]:
    return list(getattr(graph, "captures", ()))


@functools.cache
def empty_graph() -> Any:
    import tensorflow as tf

    return tf.Graph()


@contextlib.contextmanager
def outside_graphs() -> Iterator[None]:
    """Executes eagerly, outside of scopes too: in a replica's thread `tf.init_scope` does not leave the graph."""
    with empty_graph().as_default(), tf_internals.context.eager_mode():
        yield


def size_of(variable: Any) -> int:
    """Returns the bytes of a variable; 0 where its shape is not known."""
    return int((variable.shape.num_elements() or 0) * variable.dtype.size)


def arrays_of(variable: Any) -> list[Any]:
    """Returns the value of every copy, without a trace in a graph that is being made."""
    with outside_graphs():
        return [copy.numpy() for copy in copies_of(variable)]


def sample(array: Any) -> Sample:
    import numpy as np

    if array.dtype.kind not in "fiubV" or not array.size:
        return Sample()
    flat = np.asarray(array, dtype="float64").ravel()
    entries = flat[:: max(1, -(-flat.size // ENTRIES))][:ENTRIES]
    return Sample(one_nan(float(np.linalg.norm(flat))), tuple(one_nan(float(e)) for e in entries))


def one_nan(number: float) -> float:
    """Returns the one NaN of `math` for each, so that equal samples of values that are no numbers compare equal, too."""
    return math.nan if math.isnan(number) else number


def sample_of(record: Record) -> Sample:
    variable = record.variable
    return Sample() if variable is None else sample(arrays_of(variable)[0])


def distance_of_copies(variable: Any) -> float:
    """Returns how far the copies of a variable are apart, relative to its largest entry."""
    import numpy as np

    first, *others = [np.asarray(array, dtype="float64") for array in arrays_of(variable)]
    size = 1e-12 + np.abs(first).max(initial=0.0)
    distances = [
        float(np.abs(first - other).max(initial=0.0) / size)
        for other in others
        if other.shape == first.shape  # one without a value yet is empty
    ]
    return max(distances, default=0.0)


def assign(record: Record, value: Any) -> None:
    with outside_graphs():
        for copy in copies_of(record.variable):
            copy.assign(value)


def full(variable: Any, value: float) -> Any:
    """Returns an array of a variable's shape with this value everywhere."""
    import numpy as np

    return np.full(variable.shape.as_list(), value, variable.dtype.as_numpy_dtype)


def is_in_replica() -> bool:
    """Tells whether what is being done is done for a replica, or in an update for one of the copies."""
    import tensorflow as tf

    return tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()


def replica_now() -> int | None:
    """Returns the number of a replica within its process; None where it is done once, or where only a graph has the number.

    `replica_id_in_sync_group` adds an operation to the graph, and that gives others other seeds.
    """
    import tensorflow as tf

    context = tf.distribute.get_replica_context() if is_in_replica() else None
    number = tf_internals.read(context, "_replica_id") if context is not None else None
    return number if isinstance(number, int) else None


def replicas_now() -> int:
    """Returns how many replicas do what is being done; 0 where it is done once."""
    import tensorflow as tf

    if not is_in_replica():
        return 0
    if tf.distribute.get_replica_context() is None:  # in an update, once for each copy
        return 0
    return int(tf.distribute.get_strategy().num_replicas_in_sync)
