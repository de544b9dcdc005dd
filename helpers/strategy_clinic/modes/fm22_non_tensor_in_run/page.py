# %% [markdown]
# # FM22. `Could not build a TypeSpec`: a step under `tf.function` returns a plain Python object
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `TypeError: Could not build a TypeSpec for <__main__.Score object …> of unsupported type <class '__main__.Score'>.` | mirrored and central storage, several replicas | 2, 3 |
# | `TypeError: To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or None values; …, found return value of type Score, which is not a Tensor or ExtensionType.` | one replica, or the same object from several | 2, 3 |
# | `ValueError: TPU function return values must all either be Operations or convertible to Tensors. Got error: …` | `TPUStrategy` | 2, 3 |
# | `TypeError: Failed to convert elements of <__main__.Score object …> to Tensor. …` | `TPUStrategy`, an argument of the step | 2, 3 |
#
# A `tf.function` can return tensors, and dictionaries, lists and tuples of tensors. It cannot return an object of a plain
# class or of a `@dataclass`.
#
# *Raises on Keras 2 and 3, under a `tf.function`, with any strategy or none.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm22",
    slug="non_tensor_in_run",
    title="`Could not build a TypeSpec`: a step under `tf.function` returns a plain Python object",
    sees="`Could not build a TypeSpec`, or `must all either be Operations or convertible to Tensors`",
    fix="return a dictionary of tensors, or make the class a `tf.experimental.ExtensionType`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "ValueError",
            r"TPU function return values must all either be Operations or convertible to Tensors",
            strategies=("tpu_traced", "tpu"),
        ),
        Symptom(
            "TypeError",
            r"Could not build a TypeSpec for (<\w+\.)?Score",
            strategies=("mirrored", "central_storage"),
            devices=(2, 4, 8),
        ),
        Symptom(
            "TypeError",
            r"Python functions must return zero or more Tensors or ExtensionTypes or None values",
        ),
    ),
    claims=(
        Claim(
            "003-C9",
            "`experimental_distribute_values_from_function` wants tensors, or what becomes one",
            "half",
        ),
        Claim(
            "003-C10",
            "`experimental_local_results` gives one entry per replica, or a tuple of one",
            "true",
        ),
        Claim("003-C11", "arguments of `run` are tensors or distributed values, nested", "half"),
        Claim("003-C12", "results of `run` are tensors, nested", "half"),
        Claim("003-C52", "tensors that are placed on `worker_devices` stay there", "true"),
        Claim("003-C53", "`run` executes the step with the `RunOptions` that it is given", "true"),
        Claim("003-C54", "its example of `run` doubles the number of replicas", "true"),
    ),
    prints="loss: 1.0",
    exercise_prints="hits: 2 of 3",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm22", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The step returns an object, so that later code can write `score.loss`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Return a dictionary of tensors. Each of its values then holds one tensor per replica. **Reduce it key by key.** With several
# replicas, only `MirroredStrategy` reduces a whole dictionary. `CentralStorageStrategy` and `TPUStrategy` refuse `"SUM"`, and
# for `"MEAN"` they return the values of the first replica, without an error (`TPUStrategy`: seen in a trace). Two workers of
# `MultiWorkerMirroredStrategy` refuse both.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# A `NamedTuple` works too, and keeps the names: `score.loss` then holds one tensor per replica.
#
# To keep a class, derive it from `tf.experimental.ExtensionType` and declare its fields. You then get one *object* per replica.
# With several replicas read it with `strategy.experimental_local_results(evaluate())[0].loss`; `evaluate().loss` raises
# `AttributeError: 'PerReplica' object has no attribute 'loss'`, which is [FM39](fm39_per_replica_on_host.ipynb).
#
# ## Why
#
# A `tf.function` describes its return value by a [`tf.TypeSpec`](https://www.tensorflow.org/api_docs/python/tf/TypeSpec).
# Tensors have one, and so has every `tf.experimental.ExtensionType`. `tf.nest` opens lists, dictionaries and named tuples, and
# finds the tensors in them. It does not open a plain class, and a plain class has no TypeSpec. The same is true of an optimizer,
# a set and an operation.
#
# Often the object is not your own: on Keras 2, `metric.update_state(x)` returns an `Operation`. Do not return it, also not
# by `strategy.run(lambda: metric.update_state(x))`.
#
# Three checks can meet the object first, and each has its own message. With one replica it is the check of `tf.function`. With
# several replicas, the strategy puts their objects into one `PerReplica`, which needs a TypeSpec of each. `TPUStrategy` converts
# every value to a tensor before both.
#
# Without `tf.function`, `strategy.run` accepts any object. With several replicas it returns a `PerReplica` of objects, so
# `score.loss` raises there too.

# %% tags=["figure"]
# Steps that return something else, run once under each setup: without tf.function, with it, and traced by TPUStrategy.
from collections import namedtuple

import numpy as np
import tensorflow as tf

from strategy_clinic import build_strategy, figures


class Score:
    def __init__(self, loss):
        self.loss = loss


class Found(tf.experimental.ExtensionType):
    loss: tf.Tensor


Pair = namedtuple("Pair", "loss count")


def passes(setup, step, *arguments, traced=True):
    strategy = build_strategy(setup)

    def once():
        return strategy.run(step, args=arguments)

    try:
        (tf.function(once) if traced else once)()
    except (TypeError, ValueError):
        return False
    return True


RETURNED = {
    "a dictionary": lambda: {"loss": tf.constant(1.0)},
    "a named tuple": lambda: Pair(tf.constant(1.0), tf.constant(1)),
    "an ExtensionType": lambda: Found(tf.constant(1.0)),
    "a plain object": lambda: Score(tf.constant(1.0)),
}
two = session.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
FOUND = {
    name: [passes(two, step, traced=False), passes(two, step), passes(traced, step)]
    for name, step in RETURNED.items()
}
NAMES = ["no tf.function", "tf.function", "TPUStrategy"]
figures.grid(FOUND, NAMES, "passes", "raises", "What may a step return?")

# %% tags=["figure"]
# Two replicas return the losses 1.0 and 2.0, in a dictionary.
REDUCED = """import tensorflow as tf

strategy = tf.distribute.get_strategy()


@tf.function
def evaluate():
    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return {"loss": tf.cast(replica, tf.float32) + 1.0}

    return strategy.run(step)


losses = evaluate()
print(float(LOSS))
"""
REDUCTIONS = {
    f'{what}, "{how}"': REDUCED.replace("LOSS", code.format(how))
    for what, code in {
        "the dictionary": 'strategy.reduce("{}", losses, axis=None)["loss"]',
        "its value": 'strategy.reduce("{}", losses["loss"], axis=None)',
    }.items()
    for how in ("SUM", "MEAN")
}
names = ("mirrored", "central_storage", "multi_worker")
TOTALS = session.prints(REDUCTIONS, [two.but(strategy=name) for name in names])
wrong = {word for way, row in TOTALS.items() for word in row} - {"3.0", "1.5"}
figures.words(
    TOTALS, ["mirrored", "central storage", "two workers"], wrong, "What does reduce return?"
)

# %% [markdown]
# ## Try other setups
#
# Choose one device, then two, then `tpu_traced`: the same mistake has three messages.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one device and on two, with the other version of Keras, and under two other strategies:

# %% tags=["table"]
session.table(
    [
        one,
        two,
        two.but(keras=session.setup.other_keras),
        two.but(strategy="central_storage"),
        traced,
    ]
)

# %% [markdown]
# ## Exercise
#
# This evaluation reads the result of one replica, and wants to keep its class. Change how the class is declared.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## What documents say
#
# The [reference of `TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy) is stricter than
# TensorFlow:
#
# > The output must be a tf.nest of Tensors.
#
# A traced step may also return an ExtensionType. The reference also asks for tensors as arguments of `run`, and as results of a
# value function. `TPUStrategy` refuses other arguments; `MirroredStrategy` passes them to the step unchanged. Nothing checks the
# results of a value function. The printed examples are right.


# %% tags=["claims"]
# Tests what the reference says about the values that go into `run` and come out of it.
def local(strategy, make):
    """One value per replica, made by a function of its context."""
    made = strategy.experimental_distribute_values_from_function(make)
    return strategy.experimental_local_results(made)


def refuses(strategy, make):
    try:
        local(strategy, make)
    except (TypeError, ValueError):
        return True
    return False


def places(strategy):
    """Whether each of the tensors of the document's fourth example is on the device where it was placed."""
    devices, multiple_values = strategy.extended.worker_devices, []
    for i in range(strategy.num_replicas_in_sync):
        with tf.device(devices[i]):
            multiple_values.append(tf.constant(1.0))
    parts = local(strategy, lambda ctx: multiple_values[ctx.replica_id_in_sync_group])
    return [part.device for part in parts] == list(devices)


def takes_uneven_parts(**options):
    """Whether a TPU's step that is run with these options accepts a last batch that replicas cannot share evenly."""
    batches = cores.experimental_distribute_dataset(tf.data.Dataset.range(20).batch(20))
    run_options = tf.distribute.RunOptions(**options)

    @tf.function
    def step(batch):
        return cores.run(tf.reduce_sum, args=(batch,), options=run_options)

    try:
        step(next(iter(batches)))
    except ValueError:
        return False
    return True


def as_printed(strategy):
    """What the replicas return in the document's example of `run`."""

    @tf.function
    def run():
        def value_fn(value_context):
            return value_context.num_replicas_in_sync

        values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn(input):
            return input * 2

        return strategy.run(replica_fn, args=(values,))

    return [int(part) for part in strategy.experimental_local_results(run())]


def loss_of(score):
    return tf.identity(score.loss)


pair, single, cores = (build_strategy(place) for place in (two, one, traced))
three, thing = np.array([3.0, 2.0, 1.0]), Score(1.0)
with pair.scope():
    copied = tf.Variable(1.0)
session.judges(
    {
        "003-C9": [
            [float(part) for part in local(pair, lambda context: tf.constant(1.0))] == [1.0, 1.0],
            local(pair, lambda context: three[context.replica_id_in_sync_group]) == (3.0, 2.0),
            local(pair, lambda context: context.num_replicas_in_sync) == (2, 2),
            refuses(pair, lambda context: thing),
        ],
        "003-C10": [
            len(pair.experimental_local_results(pair.run(lambda: tf.ones(3)))) == 2,
            len(pair.experimental_local_results(copied)) == 2,
            pair.experimental_local_results(5.0) == (5.0,),
            len(single.experimental_local_results(single.run(lambda: tf.ones(3)))) == 1,
        ],
        "003-C11": [not passes(place, loss_of, thing) for place in (two, traced)],
        "003-C12": [not each for name in list(FOUND)[2:] for each in FOUND[name]],
        "003-C52": [places(pair), places(cores)],
        "003-C53": [
            takes_uneven_parts(),
            not takes_uneven_parts(experimental_enable_dynamic_batch_size=False),
        ],
        "003-C54": [as_printed(cores) == [16] * 8],
    },
    evidence="traced",
    other_evidence={"003-C54": "emulated"},
)

# %% [markdown]
# ## Read next
#
# - [FM39](fm39_per_replica_on_host.ipynb): what to do with a `PerReplica` on the host.
# - [FM20](fm20_gather_misuse.ipynb): how to collect the values of all replicas.
# - [FM16](fm16_tpu_eager_run.ipynb): on a TPU every step must be in a `tf.function`.
# - [FM07](fm07_python_in_traced_step.ipynb): what else of Python a `tf.function` leaves out.
