"""Variables of the program: where each was made, by whom it is written, and its values. Runs in the reader's process."""

import contextlib
import functools
import weakref

from ..base import tf_internals
from .notes import SETTINGS, note, once, way, where
from .patching import hook

RECORDS: dict = {}  # by the id of the variable; a record tells whether it is still that one
COMPONENTS: dict = {}  # by the id of a copy on one device, the record of the variable that it is a copy of
EMPTY: list = []  # a graph that nothing is ever put into
HELD_ON: dict = {}  # trained variables, by number, so that their last values can be read at the end
MOST_KEPT = 3000
SAMPLES = 48  # entries of a variable that are told, beside its norm
NUMBER = [0]
CARRIED: list = []  # the value that is given from one variable to another


class Record:
    """What is known of one variable, as the program has it: a distributed one is one variable."""

    def __init__(self, variable, maker: str):
        NUMBER[0] += 1
        self.number, self.ref, self.maker = NUMBER[0], weakref.ref(variable), maker
        self.trained = self.written = self.read = self.used = False
        self.first = None  # its samples before the program wrote to it,
        self.start = None  # and its whole value, if the program made it itself

    def is_of(self, variable) -> bool:
        return self.ref() is variable


def variable_in(weight):
    """The tf.Variable in a Keras 3 variable, or in one of mixed precision in Keras 2, or the variable itself."""
    if is_cast(type(weight)):
        return tf_internals.read(weight, "_variable")
    value = getattr(weight, "value", None)
    return weight if value is None or callable(value) else value


@functools.cache
def is_cast(kind) -> bool:
    return any(each.__name__ == "AutoCastVariable" for each in kind.__mro__)


def record_of(weight):
    """What is known of a variable, a copy of one, or a Keras variable around one."""
    variable = variable_in(weight)
    found = COMPONENTS.get(id(variable)) or RECORDS.get(id(variable))
    if found is None:
        return None
    return found if found.is_of(variable) or id(variable) in COMPONENTS else None


def numbers_of(weights) -> list:
    found = [record_of(each) for each in weights]
    return sorted({each.number for each in found if each})


def alive() -> list:
    """Records of the variables that exist, without the copies that they are made of."""
    return [
        each
        for key, each in list(RECORDS.items())
        if key not in COMPONENTS and each.ref() is not None
    ]


def keep(records):
    """Holds on to what is trained: a program that returns from its main function would take its weights along."""
    for each in records:
        if len(HELD_ON) < MOST_KEPT:
            HELD_ON[each.number] = each.ref()


# Values


def copies_of(variable) -> list:
    """What each device has of a variable or of a value; one that no strategy has spread stands alone."""
    return list(variable.values) if hasattr(type(variable), "values") else [variable]


@contextlib.contextmanager
def outside_graphs():
    """And outside of scopes, which lie on graphs. In a replica's thread `tf.init_scope` knows of no way out of the graph."""
    import tensorflow as tf

    if not EMPTY:
        EMPTY.append(tf.Graph())
    with EMPTY[0].as_default(), tf_internals.context.eager_mode():
        yield


def arrays_of(variable) -> list:
    """The value of every copy, read without leaving a trace in a graph that is being made."""
    with outside_graphs():
        return [each.numpy() for each in copies_of(variable)]


def samples(array) -> list:
    """The norm of an array and some of its entries, as plain numbers; what is not numbers has none."""
    import numpy as np

    if array.dtype.kind not in "fiubV" or not array.size:
        return []
    flat = np.asarray(array, dtype="float64").ravel()
    picked = flat[:: max(1, -(-flat.size // SAMPLES))][:SAMPLES]
    return [float(np.linalg.norm(flat)), *map(float, picked)]


def samples_of(record) -> list:
    variable = record.ref()
    return [] if variable is None else samples(arrays_of(variable)[0])


def values() -> dict:
    """The samples of all variables that can be read."""
    found = {}
    for each in alive():
        try:
            found[each.number] = samples_of(each)
        except Exception:  # not initialised, or in a graph that has gone
            continue
    return found


def spread_of(variable) -> float:
    """How far the copies of a variable are apart, relative to its size."""
    import numpy as np

    first, *others = [np.asarray(each, dtype="float64") for each in arrays_of(variable)]
    size = 1e-12 + np.abs(first).max(initial=0.0)
    return max(
        (float(np.abs(first - each).max(initial=0.0) / size) for each in others), default=0.0
    )


def give_value(record, value):
    with outside_graphs():
        for each in copies_of(record.ref()):
            each.assign(value)


def keep_for_another(record):
    """The value that a variable has when it is first not saved, for the one that takes its place after loading."""
    if record.number == given_from() and not CARRIED:
        CARRIED.append(arrays_of(record.ref())[0])


def given_from(place: int = 0) -> int:
    return int(SETTINGS.give.split(":")[place]) if SETTINGS.give else 0


def begin_with(record):
    """Gives a variable, as it is made, the value that it had before the program was started again."""
    number, _, value = SETTINGS.begin.partition(":")
    if number and record.number == int(number):
        with outside_graphs():
            for each in copies_of(record.ref()):
                each.assign(each.dtype.as_numpy_dtype(float(value)))


# Hooks


def watch_variables():
    ps_values, tpu_values = tf_internals.ps_values, tf_internals.tpu_values
    distributed, resources = tf_internals.values, tf_internals.resource_variables
    hook(resources.BaseResourceVariable, "__init__", None, made)
    hook(distributed.DistributedVariable, "__init__", None, made_of_copies)
    for kind in (ps_values.AggregatingVariable, ps_values.CachingVariable):
        hook(kind, "__init__", None, made_around)
    # A TPU's variables are written to as a whole, past the copies of each core.
    on_tpu = tpu_values.TPUDistributedVariable, tpu_values.TPUMirroredVariable
    for kind in (resources.BaseResourceVariable, resources.ResourceVariable, *on_tpu):
        for name in {"assign", "assign_add", "assign_sub"} & set(vars(kind)):
            hook(kind, name, written)
    hook(resources.BaseResourceVariable, "_read_variable_op", was_read)


def made(_, args, options):
    variable = args[0]
    if type(variable).__name__.startswith("_"):
        return  # the value of an assignment in a graph, and no variable of its own
    record = RECORDS[id(variable)] = Record(variable, way()[1])
    COMPONENTS.pop(id(variable), None)
    note_variable(record, variable, 0)


def made_of_copies(_, args, options):
    """The strategy's own variable takes the place of its copies."""
    variable, copies = args[0], list(args[0].values)
    parts = numbers_of(copies)
    record = RECORDS[id(variable)] = Record(variable, way()[1])
    for each in copies:
        COMPONENTS[id(each)] = record
    note_variable(record, variable, len(copies), parts)


def made_around(_, args, options):
    """What central storage and servers give the program for a variable: it is known by this as by itself."""
    inner = record_of(args[0].get())
    if inner is not None:
        COMPONENTS[id(args[0])] = inner
        note("central", number=inner.number)


def note_variable(record, variable, copies: int, parts=()):
    note(
        "variable",
        number=record.number,
        name=variable.name.split(":")[0],
        shape=list(variable.shape.as_list() if variable.shape.rank is not None else []),
        dtype=variable.dtype.name,
        maker=record.maker,
        copies=copies,
        parts=parts,
        reading=str(getattr(variable, "synchronization", "")).rpartition(".")[2],
        at=where(),
    )
    if CARRIED and record.number == given_from(1):
        give_value(record, CARRIED[0])
    begin_with(record)


def written(args, _):
    record = record_of(args[0])
    if record is None:
        return
    spot, part = way()
    if part in ("user", "optimizer") and record.first is None:
        record.start = arrays_of(record.ref())[0] if record.maker == "user" else None
        record.first = samples_of(record)
    record.written = record.written or part in ("user", "optimizer", "layer")
    record.trained = record.trained or part == "optimizer"
    replicas = replicas_now()
    if once("written", record.number, spot, part, replicas):
        note("written", number=record.number, by=part, replicas=replicas, at=where())


def was_read(args, _):
    record = record_of(args[0])
    if record is not None and not (record.read and record.used):
        record.read = True
        if not record.used:
            record.used = True
            note("used", number=record.number)


def replicas_now() -> int:
    """How many replicas do what is being done; 0 where it is done once."""
    import tensorflow as tf

    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return 0
    if (
        tf.distribute.get_replica_context() is None
    ):  # in an update, which is done once for each copy
        return 0
    return tf.distribute.get_strategy().num_replicas_in_sync


def apart() -> list:
    """Variables that are one for whoever reads them, and have copies that differ."""
    found = []
    for each in alive():
        variable = each.ref()
        reading = str(getattr(variable, "synchronization", ""))
        if "ON_READ" not in reading and len(copies_of(variable)) > 1:
            distance = spread_of(variable)
            if distance > 1e-5:
                found.append({"number": each.number, "apart": distance})
    return found
