# %% [markdown]
# # FM20. Scalars cannot be gathered, and a replica cannot gather
#
# You want to see the loss of every replica, and `strategy.gather` says that it cannot concatenate scalars. With other
# collectives it says `Requires start <= limit when delta > 0: 1/0`. Called inside the step, it says that it requires another
# context.
#
# ```text
# ValueError: Can't concatenate scalars (use tf.stack instead) for … with input shapes: [], [], [].
# ```
#
# *Loud, as soon as there are two replicas; with one, a scalar passes. Strategy and device count matter, Keras does not. From
# the `TPUStrategy` reference, document 003.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm20",
    slug="gather_misuse",
    title="Scalars cannot be gathered, and a replica cannot gather",
    sees="`strategy.gather` raises: it can't concatenate scalars, or requires another context",
    fix="read them with `experimental_local_results`, or gather `loss[tf.newaxis]`; in a replica, `all_gather`",
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
import strategy_clinic as clinic

session = clinic.open("fm20", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# One replica's loss explodes, and the sum of all losses does not say whose. `strategy.reduce` adds values up, so you expect
# `strategy.gather` to collect them: one loss from each replica, in a list. On one device it returns the loss.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH = 16


def examples():
    return np.random.default_rng(0).normal(size=BATCH).astype("float32")


def my_loss():
    """The squared error of one replica's part of the batch."""
    context = tf.distribute.get_replica_context()
    each = BATCH // context.num_replicas_in_sync
    mine = tf.slice(examples(), [context.replica_id_in_sync_group * each], [each])
    return tf.reduce_sum(tf.square(mine))


def expected(strategy):
    """The loss of every replica, from NumPy."""
    parts = np.split(examples(), strategy.num_replicas_in_sync)
    return [np.sum(np.square(part)) for part in parts]


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def step():
        loss = my_loss()
        return loss  # guilty: a scalar has no axis to be joined along

    @tf.function
    def losses():
        return strategy.gather(strategy.run(step), axis=0)

    got = np.ravel(losses())
    return Proof("every replica's loss is that of its examples", got, expected(strategy), 1e-5)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# [`gather`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#gather) does not make a list. It concatenates the
# replicas' tensors along an axis, as `tf.concat` does. The tensors need that axis, and the same size along every other axis. A
# scalar has no axis. With one replica there is nothing to concatenate, so the scalar comes back unchanged. The script fails
# when it gets a second device.
#
# `gather` belongs to the cross-replica context: it takes what `strategy.run` has returned. Inside the step it raises
# `gather method requires cross-replica context`. There, `tf.distribute.get_replica_context().all_gather(value, axis)` gives each
# replica the values of all replicas.
#
# The picture shows what can be gathered.


# %%
def mine():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def sparse_rows():
    return tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([4, 2]))


THINGS = {
    "a scalar": lambda: tf.cast(mine(), "float32"),
    "a vector": lambda: tf.cast(mine(), "float32")[tf.newaxis],
    "vectors of two lengths": lambda: tf.ones(3)[: 1 + mine() % 2],
    "IndexedSlices": sparse_rows,
}


def gathered(setup, thing):
    """The shape of what `gather` gives, or None where it refuses."""
    strategy = build_strategy(setup)

    @tf.function
    def once():
        return strategy.run(thing)

    try:
        return strategy.gather(once(), axis=0).shape
    except (ValueError, tf.errors.InvalidArgumentError, RuntimeError):
        return None


def gathers_inside(setup):
    strategy = build_strategy(setup)
    return gathered(setup, lambda: strategy.gather(tf.ones(1), axis=0)) is not None


two = session.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
PLACES = [one, two, traced]
FOUND = {
    name: [gathered(place, thing) is not None for place in PLACES] for name, thing in THINGS.items()
}
FOUND["a vector, in the step"] = [gathers_inside(place) for place in PLACES]
NAMES = ["mirrored x1", "mirrored x2", "TPU x8"]
figures.grid(FOUND, NAMES, "gathered", "raises", "What can be gathered along axis 0?")

# %% [markdown]
# ## The fix
#
# To look at the losses, use `strategy.experimental_local_results`. It returns a tuple with one entry per replica of this
# process, and takes scalars. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# @tf.function
# def losses():
#     return strategy.gather(strategy.run(lambda: tf.constant(2.5)), axis=0)
#
# losses()  # ValueError: with input shapes: [], [], []
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# @tf.function
# def losses():
#     return strategy.run(lambda: tf.constant(2.5))
#
# print([float(loss) for loss in strategy.experimental_local_results(losses())])  # [2.5, 2.5]
# ```
#
# With several processes each sees only its own replicas. Then give every loss an axis of length one, in the step that returns
# it, and gather along that axis. The result has one entry per replica of all processes.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def step():
        loss = my_loss()
        return loss[tf.newaxis]  # repair

    @tf.function
    def losses():
        return strategy.gather(strategy.run(step), axis=0)

    got = np.ravel(losses())
    return Proof("every replica's loss is that of its examples", got, expected(strategy), 1e-5)


session.proves(fixed)

# %%
SETUPS = [one, two, two.but(keras=session.setup.other_keras)]
SETUPS += [two.but(strategy="central_storage"), traced]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device: the scalar passes. Then choose `multi_worker`: the message becomes
# `Requires start <= limit when delta > 0: 1/0`. It comes from the code that moves the axis to the front. `MirroredStrategy` with
# its default collectives gives that message too; on this page it reduces on one device.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference, document 003, says of the values that `gather` takes:
#
# > The tensors that constitute the DistributedValues can only be dense tensors with non-zero rank, NOT a tf.IndexedSlices.
#
# The half on `tf.IndexedSlices`, the sparse gradients of embeddings, holds on a single replica only. On two replicas they are
# made dense and gathered, with all rows of the embedding for each replica. The rest is true: `gather` requires the
# cross-replica context, and its examples give the shapes that the reference prints.


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
session.judges(
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

    @tf.function
    def largest():
        return strategy.run(step)

    got = strategy.experimental_local_results(largest())
    want = [max(expected(strategy))] * len(got)
    return Proof("every replica knows the largest loss", got, want, 1e-5)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def step():
        losses = tf.distribute.get_replica_context().all_gather(my_loss()[tf.newaxis], axis=0)
        return tf.reduce_max(losses)

    @tf.function
    def largest():
        return strategy.run(step)

    got = strategy.experimental_local_results(largest())
    want = [max(expected(strategy))] * len(got)
    return Proof("every replica knows the largest loss", got, want, 1e-5)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): the other calls that a replica cannot make.
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): what `reduce` does with the values that you gather here.
# - [fm22 non_tensor_in_run](fm22_non_tensor_in_run.ipynb): what a step may return at all.
