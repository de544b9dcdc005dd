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
from strategy_clinic import FailureMode, Symptom

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
#
# Arguments differ: `TPUStrategy` refuses what is no tensor, and `MirroredStrategy` passes it to the step unchanged.

# %% tags=["figure"]
# Steps that return something else, run once under each setup: without tf.function, with it, and traced by TPUStrategy.
from collections import namedtuple

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
# ## Read next
#
# - [FM39](fm39_per_replica_on_host.ipynb): what to do with a `PerReplica` on the host.
# - [FM20](fm20_gather_misuse.ipynb): how to collect the values of all replicas.
# - [FM16](fm16_tpu_eager_run.ipynb): on a TPU every step must be in a `tf.function`.
# - [FM07](fm07_python_in_traced_step.ipynb): what else of Python a `tf.function` leaves out.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
