# %% [markdown]
# # FM20. Scalars cannot be gathered, and a replica cannot gather
#
# You want to see the loss of every replica, and `strategy.gather` says that it cannot concatenate scalars; or you call it inside
# the step, and it says that it needs another context.
#
# ```text
# ValueError: Can't concatenate scalars (use tf.stack instead) for '{{node concat}} = ConcatV2[N=2, T=DT_FLOAT, Tidx=DT_INT32](Sum, replica_1/Sum, concat/axis)' with input shapes: [], [], [].
# ```
#
# *Loud, as soon as there are two replicas; on one, a scalar passes. Keras has no part in it. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm20",
    slug="gather_misuse",
    title="Scalars cannot be gathered, and a replica cannot gather",
    sees="`strategy.gather` raises: it can't concatenate scalars, or requires another context",
    fix="return `loss[tf.newaxis]` and gather along axis 0; in a replica, use `all_gather`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "ValueError",
            r"Can't concatenate scalars \(use tf\.stack instead\)",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
        Symptom(
            "ValueError",
            r"Requires start <= limit when delta > 0: 1/0",
            strategies=("multi_worker",),
        ),
    ),
    claims=(
        Claim("003-C13", "`gather` can be called in cross-replica context only", "true"),
        Claim(
            "003-C14", "`gather` takes dense tensors of non-zero rank, and no IndexedSlices", "half"
        ),
        Claim("003-C15", "`gather` concatenates along the axis, with the shapes shown", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm20", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# One replica's loss explodes, and the sum of all of them does not say whose. `reduce` adds up, so `gather` must be what collects:
# one loss from each replica, a list of them in your hands. On one device it even gives you the loss.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, runner

BATCH = 16


def examples():
    return np.random.default_rng(0).normal(size=BATCH).astype("float32")


def my_loss():
    """The squared error of one replica's part of the batch."""
    context = tf.distribute.get_replica_context()
    each = BATCH // context.num_replicas_in_sync
    mine = tf.slice(examples(), [context.replica_id_in_sync_group * each], [each])
    return tf.reduce_sum(tf.square(mine))


def losses_of(strategy, step):
    """What the replicas return, collected in one traced step."""

    @tf.function
    def collect():
        return strategy.gather(strategy.run(step), axis=0)

    parts = np.split(examples(), strategy.num_replicas_in_sync)
    want = [np.sum(np.square(part)) for part in parts]
    return Proof("every replica's loss is that of its examples", np.ravel(collect()), want, 1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def step():
        loss = my_loss()
        return loss  # guilty: a scalar has no axis along which it could be put beside others

    return losses_of(strategy, step)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# `gather` does not make a list. It is `tf.concat` across replicas: the parts must have an axis to be joined along, and must agree
# in all others. A scalar has none. With one replica there is nothing to join, so the scalar comes back as it went in, and the
# script fails on the day when it gets a second device.
#
# It also stands above the replicas, and joins what they have returned. In the step, where one replica knows its own value only,
# the same thing is called `tf.distribute.get_replica_context().all_gather(value, axis)`.
#
# The picture gathers six things on three strategies. See
# [`tf.distribute.Strategy.gather`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#gather).


# %%
def mine():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def sparse_rows():
    return tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([4, 2]))


THINGS = {
    "a scalar": lambda: 1.0 * tf.cast(mine(), "float32"),
    "a vector": lambda: tf.cast(mine(), "float32")[tf.newaxis],
    "vectors of two lengths": lambda: tf.ones(3)[: 1 + mine()],
    "rows of two widths": lambda: tf.ones((1, 3))[:, : 1 + mine() % 2],
    "IndexedSlices": sparse_rows,
}


def gathered(setup, thing):
    """The shape of what `gather` gives, or None where it refuses."""
    strategy = build_strategy(setup)
    try:
        return strategy.gather(runner(strategy)(thing), axis=0).shape
    except (ValueError, tf.errors.InvalidArgumentError, RuntimeError):
        return None


def gathers_inside(setup):
    strategy = build_strategy(setup)
    return gathered(setup, lambda: strategy.gather(tf.ones(1), axis=0)) is not None


two = clinic.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
PLACES = [one, two, traced]
FOUND = {
    name: [gathered(place, thing) is not None for place in PLACES] for name, thing in THINGS.items()
}
FOUND["anything, in a replica"] = [gathers_inside(place) for place in PLACES]
NAMES = ["mirrored x1", "mirrored x2", "TPU x8"]
figures.grid(FOUND, NAMES, "gathered", "raises", "What can be gathered along axis 0?")

# %% [markdown]
# ## The fix
#
# Give each loss an axis of length one, in the step that returns it. What comes back has one entry per replica, in their order.
# Where only this process is asked, `strategy.experimental_local_results(value)` needs no axis at all: it is the list.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def step():
        loss = my_loss()
        return loss[tf.newaxis]  # repair

    return losses_of(strategy, step)


clinic.proves(fixed)

# %%
SETUPS = [one, two, two.but(devices=4), two.but(keras=clinic.setup.other_keras)]
SETUPS += [one.but(strategy="default"), two.but(strategy="central_storage"), traced]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `multi_worker`: the same mistake has another message there, about a range whose start is after its end. It is the code
# that moves the axis to the front, and finds none.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, draws its examples right. Its warning about `tf.IndexedSlices`, the sparse gradients of embeddings,
# holds on a single replica only: on two they are made dense and gathered, with all rows of the embedding for each replica.


# %% tags=["claims"]
def everywhere(strategy, value):
    return strategy.experimental_distribute_values_from_function(lambda _: tf.identity(value))


def shapes(strategy, value):
    """Gathered along each axis, in a `tf.function` as in the document: are these NumPy's values?"""
    parts, count = everywhere(strategy, value), strategy.num_replicas_in_sync
    gather = tf.function(strategy.gather)
    got = [gather(parts, axis=axis).numpy() for axis in range(value.ndim)]
    want = [np.concatenate([value] * count, axis=axis) for axis in range(value.ndim)]
    return [np.array_equal(g, w) for g, w in zip(got, want)], [each.shape for each in got]


four = build_strategy(two.but(devices=4))
equal, seen = shapes(four, np.arange(6).reshape(1, 2, 3))
first_equal, first_seen = shapes(build_strategy(two), np.array([[1], [2]]))
clinic.judges(
    {
        "003-C13": [
            *[not gathers_inside(place) for place in (one, two, one.but(strategy="default"))],
            gathered(two, THINGS["a vector"]) == (2,),
        ],
        "003-C14": [
            gathered(two, THINGS["a scalar"]) is None,
            gathered(two, THINGS["IndexedSlices"]) is None,
        ],
        "003-C15": [
            *equal,
            *first_equal,
            seen == [(4, 2, 3), (1, 8, 3), (1, 2, 12)],
            first_seen[0] == (4, 1),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# Each replica wants to know the largest of all losses, while the step is running. Change one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def step():
        losses = strategy.gather(my_loss()[tf.newaxis], axis=0)
        return tf.reduce_max(losses)

    got = strategy.experimental_local_results(runner(strategy)(step))
    parts = np.split(examples(), strategy.num_replicas_in_sync)
    want = [max(np.sum(np.square(part)) for part in parts)] * len(got)
    return Proof("every replica knows the largest loss", got, want, 1e-5)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def step():
        losses = tf.distribute.get_replica_context().all_gather(my_loss()[tf.newaxis], axis=0)
        return tf.reduce_max(losses)

    got = strategy.experimental_local_results(runner(strategy)(step))
    parts = np.split(examples(), strategy.num_replicas_in_sync)
    want = [max(np.sum(np.square(part)) for part in parts)] * len(got)
    return Proof("every replica knows the largest loss", got, want, 1e-5)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): the other calls that a replica cannot make.
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): what `reduce` does with the values that you gather here.
