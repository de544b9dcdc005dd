# %% [markdown]
# # FM19. A mean of means is wrong for the last batch
#
# A test set is evaluated on several devices. The mean of the last batch is a little off, or `nan`. On one device it is right.
#
# ```text
# mean error of the last batch 54.6, of its five examples 51
# ```
#
# *Silent. It needs several replicas and a last batch that they cannot share evenly. Strategy and device count matter, Keras
# does not. From the `TPUStrategy` reference, document 003.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm19",
    slug="partial_last_batch",
    title="A mean of means is wrong for the last batch",
    sees="an evaluation on several devices gives a slightly different mean, or `nan`",
    fix='reduce the values of all examples at once: `strategy.reduce("MEAN", values, axis=0)`',
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"the mean of every batch is that of its examples",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim(
            "003-C16",
            "`axis=None` reduces over the replicas only, `axis=0` over the whole batch as well",
            "true",
        ),
        Claim("003-C17", "uneven parts are a shape mismatch unless an axis is given", "true"),
        Claim(
            "003-C18",
            "MEAN with `axis=0` divides by the true count; a mean of means weighs 1/8 and 1/4",
            "true",
        ),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm19", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Every replica returns the mean error of its part of the batch, and `strategy.reduce("MEAN", ...)` makes one number of them. In
# training, with full batches, that number is right. You evaluate with the same lines. The test set has 13 examples, so the
# second batch has 5 examples instead of 8.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH, EXAMPLES = 8, 13


def batches(strategy, examples, drop_remainder=False):
    """The numbers 1, 2, 3, ... in batches, each divided among the replicas."""
    numbers = tf.data.Dataset.from_tensor_slices(tf.range(1.0, examples + 1.0))
    dataset = numbers.batch(BATCH, drop_remainder=drop_remainder)
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return dataset  # here the coordinator is the only replica, and takes its data undivided
    return strategy.experimental_distribute_dataset(dataset)


def errors_of(batch):
    return tf.square(batch - 4.0)


def mean_of(batch):
    return tf.reduce_mean(errors_of(batch))


def compared(got):
    """The mean error of each batch beside the same from NumPy."""
    errors = (np.arange(1.0, EXAMPLES + 1.0) - 4.0) ** 2
    want = [errors[:BATCH].mean(), errors[BATCH:].mean()]
    return Proof("the mean of every batch is that of its examples", got, want)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    @tf.function
    def mean_error(batch):
        return strategy.reduce("MEAN", strategy.run(mean_of, args=(batch,)), axis=None)  # guilty

    return compared([float(mean_error(batch)) for batch in batches(strategy, EXAMPLES)])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A mean does not say how many values it was made of. The last batch has five examples. Of two replicas, one gets three of them
# and the other two. Each replica's mean then counts one half, so an example of the first replica weighs 1/6 and one of the
# second 1/4. Each should weigh 1/5.
#
# A replica may also get no example. The mean of an empty tensor is 0/0, which is `nan`, and one `nan` makes the mean of all
# means `nan`.
#
# Some last batches give the right mean. Each replica gets the rest divided by the number of replicas, rounded up, until nothing
# is left. Of a rest of six, two replicas get three each; four replicas get 2, 2, 2 and 0. The picture tries several sizes of
# the last batch. See [the guide on partial batches](https://www.tensorflow.org/tutorials/distribute/input#partial_batches).


# %%
def word(setup, rest):
    """What the mean of means is, for a last batch of that many examples."""
    strategy = build_strategy(setup)
    for batch in batches(strategy, rest):
        mean = strategy.reduce("MEAN", strategy.run(tf.reduce_mean, args=(batch,)), axis=None)
    off = abs(float(mean) - (rest + 1) / 2)
    return "nan" if np.isnan(off) else "right" if off < 1e-5 else "wrong"


two = session.setup.but(strategy="mirrored", devices=2)
RESTS = [8, 6, 5]
FOUND = {f"{n} replicas": [word(two.but(devices=n), rest) for rest in RESTS] for n in (2, 4)}
NAMES = [f"{rest} left" for rest in RESTS]
figures.words(FOUND, NAMES, ("wrong", "nan"), "The mean of the replicas' means is")

# %% [markdown]
# ## The fix
#
# Let each replica return one value per example, and give `reduce` the axis of the examples. It then divides the sum of all
# values by the number of all examples. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0, 10.0]).batch(8)
#
# for batch in strategy.experimental_distribute_dataset(dataset):
#     means = strategy.run(tf.reduce_mean, args=(batch,))
#     print(float(strategy.reduce("MEAN", means, axis=None)))  # 4.5
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0, 10.0]).batch(8)
#
# for batch in strategy.experimental_distribute_dataset(dataset):
#     values = strategy.run(tf.identity, args=(batch,))
#     print(float(strategy.reduce("MEAN", values, axis=0)))  # 4.0
# ```
#
# In a training step the same is `tf.reduce_sum(errors) / global_batch_size` on each replica, and `"SUM"` over the replicas.
#
# `checks.assert_mean_of_all(strategy, mean, values)` compares a mean with the values of all replicas, and raises if it is not
# theirs. After `from strategy_clinic import checks, pasted`, `print(pasted(checks.assert_mean_of_all))` prints it with all
# that it needs.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    @tf.function
    def mean_error(batch):
        return strategy.reduce("MEAN", strategy.run(errors_of, args=(batch,)), axis=0)  # repair

    return compared([float(mean_error(batch)) for batch in batches(strategy, EXAMPLES)])


session.proves(fixed)

# %%
SETUPS = [two.but(devices=count) for count in (1, 2, 4)]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Raise the number of devices from 1. With two, the mean is a little off. With four, the last batch leaves a replica without an
# example, and the mean is `nan`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference, document 003, says of a last batch of six:
#
# > If you specify tf.distribute.ReduceOp.MEAN, using axis=0 will use the correct denominator of 6. Contrast this with computing
# > reduce_mean to get a scalar value on each replica and this function to average those means, which will weigh some values 1/8
# > and others 1/4.
#
# The run agrees. Without `axis=0` such a batch is a shape mismatch, as the sentence before it says. The reference divides the
# six examples into four and two. You have to do that by hand: `experimental_distribute_dataset` gives three to each replica.


# %% tags=["claims"]
def divided(strategy, parts):
    """Each replica gets its list."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def refuses(strategy, values):
    try:
        strategy.reduce("SUM", values, axis=None)
    except tf.errors.InvalidArgumentError:
        return True
    return False


pair = build_strategy(two)
even = divided(pair, [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
uneven = divided(pair, [[0.0, 1.0, 2.0, 3.0], [4.0, 8.0]])
means = divided(pair, [1.5, 6.0])
weighed = sum(value / 8 for value in (0, 1, 2, 3)) + sum(value / 4 for value in (4, 8))
session.judges(
    {
        "003-C16": [
            pair.reduce("SUM", even, axis=None).numpy().tolist() == [4, 6, 8, 10],
            float(pair.reduce("SUM", even, axis=0)) == 28,
        ],
        "003-C17": [
            refuses(pair, uneven),
            not refuses(pair, even),
            float(pair.reduce("SUM", uneven, axis=0)) == 18,
        ],
        "003-C18": [
            float(pair.reduce("MEAN", uneven, axis=0)) == 18 / 6,
            float(pair.reduce("MEAN", means, axis=None)) == weighed != 18 / 6,
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This loop counts how many of the thirteen numbers are above 4. It raised on the last batch, whose parts have different
# lengths, until somebody dropped that batch. Make it count all of them.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, count = build_strategy(setup), 0.0

    @tf.function
    def above(batch):
        found = strategy.run(lambda numbers: tf.cast(numbers > 4.0, "float32"), args=(batch,))
        return tf.reduce_sum(strategy.reduce("SUM", found, axis=None))

    for batch in batches(strategy, EXAMPLES, drop_remainder=True):
        count += float(above(batch))
    return Proof("nine of the numbers are above 4", [count], [9.0])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, count = build_strategy(setup), 0.0

    @tf.function
    def above(batch):
        found = strategy.run(lambda numbers: tf.cast(numbers > 4.0, "float32"), args=(batch,))
        return strategy.reduce("SUM", found, axis=0)

    for batch in batches(strategy, EXAMPLES):
        count += float(above(batch))
    return Proof("nine of the numbers are above 4", [count], [9.0])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): the same division by the wrong number, in a training
#   loss.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): a training that depends on how many replicas share a batch.
# - [fm21 dataset_misdistributed](fm21_dataset_misdistributed.ipynb): each replica gets a whole batch instead of a part.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): where `strategy.reduce` may be called at
#   all.
