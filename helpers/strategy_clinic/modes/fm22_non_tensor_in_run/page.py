# %% [markdown]
# # FM22. A traced step cannot return a plain Python object
#
# A step returns a small object with its loss and its count. That works eagerly. Under `tf.function` the same step raises, and
# the message depends on the number of replicas.
#
# ```text
# TypeError: Could not build a TypeSpec for Outcome … of unsupported type <class '__main__.Outcome'>.
# ```
#
# *Loud under every strategy, with three messages. Strategy and device count choose the message; Keras plays no part. From the
# `TPUStrategy` reference, document 003.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm22",
    slug="non_tensor_in_run",
    title="A traced step cannot return a plain Python object",
    sees="`Could not build a TypeSpec`, or `must all either be Operations or convertible to Tensors`",
    fix="return tensors in a dictionary or named tuple, or make the class a `tf.experimental.ExtensionType`",
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
            r"Could not build a TypeSpec for (<\w+\.)?Outcome",
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
    ),
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
# ## What goes wrong
#
# A step computes a loss and a count. You put the two into a dataclass, so that later code can say `outcome.loss`. Called
# eagerly, `strategy.run` returns such objects, one per replica. You conclude that a step may return anything, and add
# `@tf.function` for speed.

# %%
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH = 16


@dataclass
class Outcome:
    """What a step has found."""

    loss: tf.Tensor
    count: tf.Tensor


def examples():
    return np.random.default_rng(0).normal(size=BATCH).astype("float32")


def my_part():
    """The examples of this replica."""
    context = tf.distribute.get_replica_context()
    each = BATCH // context.num_replicas_in_sync
    return tf.slice(examples(), [context.replica_id_in_sync_group * each], [each])


def compared(strategy, loss, count):
    """The sums over all replicas beside those of the whole batch."""
    got = [strategy.reduce("SUM", each, axis=None) for each in (loss, count)]
    want = [np.sum(np.square(examples())), BATCH]
    return Proof("loss and count are those of the whole batch", got, want, 1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def step():
        mine = my_part()
        loss, count = tf.reduce_sum(tf.square(mine)), tf.size(mine)
        return Outcome(loss, count)  # guilty: tf.function has no type for it

    @tf.function
    def train_step():
        return strategy.run(step)

    outcome = train_step()
    return compared(strategy, outcome.loss, outcome.count)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Called eagerly, `strategy.run` runs the step once per replica and returns what the step returned. A `tf.function` has to
# describe its return value by a [`tf.TypeSpec`](https://www.tensorflow.org/api_docs/python/tf/TypeSpec). Tensors have one, and
# so has every `tf.experimental.ExtensionType`. Tuples, lists, dictionaries and named tuples may hold them, since `tf.nest`
# opens these containers. A dataclass has no TypeSpec, and `tf.nest` does not open it. The same is true of any plain class.
#
# Three checks can meet the object first, and each has its own message. With one replica it is the check of `tf.function`. With
# several replicas, TensorFlow first looks for a TypeSpec of each replica's object. `TPUStrategy` converts each value to a
# tensor before both.
#
# The picture shows what a step may return.


# %%
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
    "tensors in a dictionary": lambda: {"loss": tf.constant(1.0)},
    "tensors in a named tuple": lambda: Pair(tf.constant(1.0), tf.constant(1)),
    "an ExtensionType": lambda: Found(tf.constant(1.0)),
    "a dataclass": lambda: Outcome(tf.constant(1.0), tf.constant(1)),
}
two = session.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
FOUND = {
    name: [passes(two, step, traced=False), passes(two, step), passes(traced, step)]
    for name, step in RETURNED.items()
}
NAMES = ["x2, eager", "x2, traced", "TPU x8"]
figures.grid(FOUND, NAMES, "passes", "raises", "What may a step return?")

# %% [markdown]
# ## The fix
#
# There are two ways. The first keeps the class: derive it from `tf.experimental.ExtensionType`, and give its fields types.
# `strategy.experimental_local_results` then returns one object per replica. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# class Outcome:
#     def __init__(self, loss, count):
#         self.loss, self.count = loss, count
#
# @tf.function
# def train_step():
#     return strategy.run(lambda: Outcome(tf.constant(1.5), tf.constant(4)))
#
# train_step()  # TypeError: Could not build a TypeSpec for
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# class Outcome(tf.experimental.ExtensionType):
#     loss: tf.Tensor
#     count: tf.Tensor
#
# @tf.function
# def train_step():
#     return strategy.run(lambda: Outcome(tf.constant(1.5), tf.constant(4)))
#
# print([float(each.loss) for each in strategy.experimental_local_results(train_step())])  # [1.5, 1.5]
# ```
#
# The second way returns a dictionary or a named tuple of tensors. Choose it where `strategy.reduce` adds up the results:
# `reduce` takes the values of one key, and no objects.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def step():
        mine = my_part()
        loss, count = tf.reduce_sum(tf.square(mine)), tf.size(mine)
        return {"loss": loss, "count": count}  # repair

    @tf.function
    def train_step():
        return strategy.run(step)

    outcome = train_step()
    return compared(strategy, outcome["loss"], outcome["count"])


session.proves(fixed)

# %%
SETUPS = [one, two, two.but(keras=session.setup.other_keras)]
SETUPS += [two.but(strategy="central_storage"), traced]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device, then two, then `tpu_traced`: the same mistake has three messages.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference, document 003, says of the function that `run` calls:
#
# > The output must be a tf.nest of Tensors.
#
# That is stricter than TensorFlow. A traced step may also return an ExtensionType, and `TPUStrategy` traces it as well. An
# eager step may return any object. Of the arguments it says:
#
# > All arguments in args or kwargs should either be nest of tensors or tf.distribute.DistributedValues containing tensors or
# > composite tensors.
#
# `TPUStrategy` refuses other arguments. `MirroredStrategy` hands them to the step unchanged. Of a value function it says:
#
# > It must return a Tensor or a type that can be converted to a Tensor.
#
# Nothing checks that: the function may return any object. What it says of `experimental_local_results` is true.


# %% tags=["claims"]
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


def loss_of(outcome):
    return tf.identity(outcome.loss)


pair, single = build_strategy(two), build_strategy(one)
three, thing = np.array([3.0, 2.0, 1.0]), Outcome(1.0, 1)
with pair.scope():
    copied = tf.Variable(1.0)
session.judges(
    {
        "003-C9": [
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
    },
    evidence="traced",
)

# %% [markdown]
# ## Exercise
#
# This evaluation counts on each replica how many of its examples are positive. It wants to keep its class, and raises. Change
# how the class is declared.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    @dataclass
    class Score:
        hits: tf.Tensor
        seen: tf.Tensor

    @tf.function
    def evaluate(numbers):
        return strategy.run(
            lambda: Score(tf.reduce_sum(tf.cast(numbers > 0, "int32")), tf.size(numbers))
        )

    scores = strategy.experimental_local_results(evaluate(tf.constant([-1.0, 2.0, 3.0])))
    got = [[each.hits, each.seen] for each in scores]
    return Proof("each replica has counted two hits of three", got, [[2, 3]] * len(got))


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    class Score(tf.experimental.ExtensionType):
        hits: tf.Tensor
        seen: tf.Tensor

    @tf.function
    def evaluate(numbers):
        return strategy.run(
            lambda: Score(tf.reduce_sum(tf.cast(numbers > 0, "int32")), tf.size(numbers))
        )

    scores = strategy.experimental_local_results(evaluate(tf.constant([-1.0, 2.0, 3.0])))
    got = [[each.hits, each.seen] for each in scores]
    return Proof("each replica has counted two hits of three", got, [[2, 3]] * len(got))


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): on a TPU every step has to be traced.
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what else of Python a trace leaves out.
# - [fm20 gather_misuse](fm20_gather_misuse.ipynb): how to collect the values that the replicas return.
