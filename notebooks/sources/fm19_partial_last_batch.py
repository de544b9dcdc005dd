# %% [markdown]
# # FM19. A mean of means is wrong for the last batch
#
# A test set is evaluated on several devices, and its last mean is a little off, or not a number. On one device it is right.
#
# *Silent. It needs several replicas and a last batch that they cannot share evenly; Keras has no part in it. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
            r"a replica with few of them has weighed as much as a full one",
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
import helpers

clinic = helpers.open("fm19", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Every replica returns the mean error of its part of the batch, and `strategy.reduce("MEAN", ...)` makes one number of them. That
# is how a loss is reported in training, where batches are full. You evaluate with the same lines, and thirteen examples do not
# fill two batches of eight.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, runner

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


def evaluate(setup, mean_of):
    """The mean error of every batch, and the same from NumPy."""
    strategy, got = build_strategy(setup), []
    for batch in batches(strategy, EXAMPLES):
        errors = runner(strategy)(errors_of, args=(batch,))
        got.append(mean_of(strategy, errors))
        checks.assert_mean_of_all(strategy, got[-1], errors)
    errors = (np.arange(1.0, EXAMPLES + 1.0) - 4.0) ** 2
    want = [errors[:BATCH].mean(), errors[BATCH:].mean()]
    return Proof("the mean of every batch is that of its examples", got, want)


def replica_means(strategy, errors):
    return runner(strategy)(tf.reduce_mean, args=(errors,))


# %%
@experiment
def broken(setup):
    def mean_of(strategy, errors):
        return strategy.reduce("MEAN", replica_means(strategy, errors), axis=None)  # guilty

    return evaluate(setup, mean_of)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A mean forgets how many values it was made of. The last batch has five examples, two replicas get three and two of them, and
# each mean then counts one half: an example of the first replica weighs 1/6, one of the second 1/4, where each should weigh 1/5.
#
# A replica that gets nothing is worse. The mean of an empty tensor is 0/0, and one `nan` among eight means makes `nan` of all.
#
# Worst is that it often goes well. The dataset divides what is left as evenly as it can, so a rest of four or six on two replicas
# gives the right mean. The picture tries every size of the last batch. See [the guide on partial
# batches](https://www.tensorflow.org/tutorials/distribute/input#partial_batches).


# %%
def is_right(setup, rest):
    """Whether the mean of means is the mean, for a batch of that many examples."""
    strategy = build_strategy(setup)
    for batch in batches(strategy, rest):
        mean = strategy.reduce("MEAN", strategy.run(tf.reduce_mean, args=(batch,)), axis=None)
    return abs(float(mean) - (rest + 1) / 2) < 1e-5


two = clinic.setup.but(strategy="mirrored", devices=2)
RESTS = [8, 7, 6, 5, 4, 2]
FOUND = {f"{n} replicas": [is_right(two.but(devices=n), rest) for rest in RESTS] for n in (2, 4, 8)}
NAMES = [f"{rest} left" for rest in RESTS]
figures.grid(FOUND, NAMES, "right", "wrong", "The mean of the replicas' means is")

# %% [markdown]
# ## The fix
#
# Let each replica return one value per example, and give `reduce` the axis on which the examples lie. It then adds up all values
# and all counts before it divides, and an empty replica adds zero to both. `checks.assert_mean_of_all(strategy, mean, values)`
# raises where TensorFlow is silent.
#
# In a training step the same reasoning reads `tf.reduce_sum(errors) / global_batch_size` on each replica, and `"SUM"` over them.


# %%
@experiment
def fixed(setup):
    def mean_of(strategy, errors):
        return strategy.reduce("MEAN", errors, axis=0)  # repair: one value per example

    return evaluate(setup, mean_of)


clinic.proves(fixed)

# %%
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
SETUPS = [one, two, two.but(devices=4), two.but(keras=clinic.setup.other_keras)]
SETUPS += [one.but(strategy="default"), two.but(strategy="central_storage"), traced]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Raise the number of devices from 1: at 2 the mean is slightly off; from 4 on there is a replica without any example, and the
# mean is `nan`. A TPU does the same.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, has all three rules, and all three hold. Its last batch of six in parts of four and two is one that
# you make yourself: `experimental_distribute_dataset` would give three to each replica.


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
clinic.judges(
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
# This loop counts how many of the thirteen numbers are above 4. It raised on the last batch, whose parts have no common shape,
# until somebody dropped that batch. Make it count all of them.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, count = build_strategy(setup), 0.0
    for batch in batches(strategy, EXAMPLES, drop_remainder=True):
        above = runner(strategy)(lambda numbers: tf.cast(numbers > 4.0, "float32"), args=(batch,))
        count += float(tf.reduce_sum(strategy.reduce("SUM", above, axis=None)))
    return Proof("nine of the numbers are above 4", [count], [9.0])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, count = build_strategy(setup), 0.0
    for batch in batches(strategy, EXAMPLES):
        above = runner(strategy)(lambda numbers: tf.cast(numbers > 4.0, "float32"), args=(batch,))
        count += float(strategy.reduce("SUM", above, axis=0))
    return Proof("nine of the numbers are above 4", [count], [9.0])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): a training that depends on how many replicas share a batch.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): where `strategy.reduce` may be called at all.
