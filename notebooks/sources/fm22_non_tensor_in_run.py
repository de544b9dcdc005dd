# %% [markdown]
# # FM22. A traced step cannot return an object of your own
#
# A step returns a small object with its loss and its count, and works. Under `tf.function` the same step raises, in words that
# depend on how many replicas there are.
#
# ```text
# TypeError: Could not build a TypeSpec for Outcome of unsupported type <class '__main__.Outcome'>.
# ```
#
# *Loud under every strategy, with three messages; Keras has no part in it. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm22",
    slug="non_tensor_in_run",
    title="A traced step cannot return an object of your own",
    sees="`could not build a TypeSpec`, or `return values must all be convertible to Tensors`",
    fix="let steps return tensors, in tuples, lists or dictionaries",
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
            r"Could not build a TypeSpec for Outcome",
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
import helpers

clinic = helpers.open("fm22", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Two numbers come out of a step, then four, so you give them names and put them into a class. Python does not mind, and
# `strategy.run` does not either: on two replicas it hands you two such objects. You conclude that a step may return anything.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures

BATCH = 16


def examples():
    return np.random.default_rng(0).normal(size=BATCH).astype("float32")


class Outcome:
    """What a step has found."""

    def __init__(self, loss, count):
        self.loss, self.count = loss, count

    def __repr__(self):
        return "Outcome"


def outcome_of_my_part():
    context = tf.distribute.get_replica_context()
    each = BATCH // context.num_replicas_in_sync
    mine = tf.slice(examples(), [context.replica_id_in_sync_group * each], [each])
    return Outcome(tf.reduce_sum(tf.square(mine)), tf.size(mine))


def mean_loss(strategy, step):
    """One traced step, and the mean loss of the examples of all replicas."""

    @tf.function
    def train_step():
        return strategy.run(step)

    found = train_step()
    loss, count = (strategy.reduce("SUM", found[name], axis=None) for name in ("loss", "count"))
    want = [np.mean(np.square(examples())), BATCH]
    return Proof("loss and count are those of the whole batch", [loss / BATCH, count], want)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def step():
        outcome = outcome_of_my_part()
        return outcome  # guilty: a graph has tensors at its end, and nothing else

    return mean_loss(strategy, step)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Eagerly `strategy.run` is a loop over replicas, and passes on whatever it is given. A `tf.function` has to describe what crosses
# its border, and can describe tensors, and structures of them that `tf.nest` can open: tuples, lists, dictionaries, named tuples.
# An object of your own is none of these. What the message says depends on who looks first: with one replica `tf.function` meets
# your object, with several it meets a bundle of them, and a TPU looks before both.
#
# Arguments are another matter. Most strategies hand a model or a function through to the step as it is; a TPU makes tensors of
# all arguments, and refuses what is none. Let the step find such things around it instead.
#
# The picture tries both directions. See [the guide on
# `tf.nest`](https://www.tensorflow.org/api_docs/python/tf/nest).


# %%
def passes(setup, step, *arguments, traced=True):
    strategy = build_strategy(setup)

    def once():
        return strategy.run(step, args=arguments)

    try:
        (tf.function(once) if traced else once)()
    except (TypeError, ValueError):
        return False
    return True


def identity(value):
    return tf.identity(value)


def square_by(function):
    return function(tf.constant(2.0))


def loss_of(outcome):
    return tf.identity(outcome.loss)


WHAT = {
    "returns tensors in a dict": [lambda: {"loss": tf.constant(1.0)}],
    "returns a Python number": [lambda: 1.5],
    "returns an object": [outcome_of_my_part],
    "takes tensors in a dict": [lambda d: tf.identity(d["x"]), {"x": tf.constant(1.0)}],
    "takes a Python number": [identity, 1.5],
    "takes an object": [loss_of, Outcome(1.0, 1)],
    "takes a function": [square_by, tf.square],
}
two = clinic.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
FOUND = {
    name: [passes(two, *what, traced=False), passes(two, *what), passes(traced, *what)]
    for name, what in WHAT.items()
}
NAMES = ["x2, eager", "x2, traced", "TPU x8"]
figures.grid(FOUND, NAMES, "passes", "raises", "What may a step return, and take?")

# %% [markdown]
# ## The fix
#
# Open the object before it leaves the step. The dictionary comes back with the same keys, and under each of them one value per
# replica: `strategy.reduce` takes them, which it would not do with objects. A named tuple does as well, and keeps the dots.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def step():
        outcome = outcome_of_my_part()
        return {"loss": outcome.loss, "count": outcome.count}  # repair

    return mean_loss(strategy, step)


clinic.proves(fixed)

# %%
SETUPS = [one, two, two.but(devices=4), two.but(keras=clinic.setup.other_keras)]
SETUPS += [one.but(strategy="default"), two.but(strategy="central_storage"), traced]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device, then two, then the TPU: one mistake, three messages. Only the TPU's says what it wants.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, writes for TPUs, and is stricter than TensorFlow. Its two rules about `run` hold for a traced step
# and for a TPU, each for one direction; a value function may return anything, and the step finds out.


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


pair, single = build_strategy(two), build_strategy(one)
three = np.array([3.0, 2.0, 1.0])
with pair.scope():
    copied = tf.Variable(1.0)
clinic.judges(
    {
        "003-C9": [
            local(pair, lambda context: three[context.replica_id_in_sync_group]) == (3.0, 2.0),
            local(pair, lambda context: context.num_replicas_in_sync) == (2, 2),
            refuses(pair, lambda context: Outcome(1.0, 1)),
        ],
        "003-C10": [
            len(pair.experimental_local_results(pair.run(lambda: tf.ones(3)))) == 2,
            len(pair.experimental_local_results(copied)) == 2,
            pair.experimental_local_results(5.0) == (5.0,),
            len(single.experimental_local_results(single.run(lambda: tf.ones(3)))) == 1,
        ],
        "003-C11": [not traces for traces in FOUND["takes an object"]],
        "003-C12": [not traces for traces in FOUND["returns an object"]],
    },
    evidence="traced",
)

# %% [markdown]
# ## Exercise
#
# This step tells how many examples it has seen, and the replicas' numbers are added up; on two replicas that raises. A number of
# Python's that is equal on all replicas comes back once, not once for each. Change one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def step():
        seen = BATCH // strategy.num_replicas_in_sync
        return seen

    @tf.function
    def count():
        return strategy.reduce("SUM", strategy.run(step), axis=None)

    return Proof("all examples have been seen", [count()], [BATCH])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def step():
        seen = BATCH // strategy.num_replicas_in_sync
        return tf.constant(seen)

    @tf.function
    def count():
        return strategy.reduce("SUM", strategy.run(step), axis=None)

    return Proof("all examples have been seen", [count()], [BATCH])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): why every step is traced in the end.
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what else of Python does not survive it.
# - [fm20 gather_misuse](fm20_gather_misuse.ipynb): what to do with the values that the replicas return.
