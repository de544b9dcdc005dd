# %% [markdown]
# # FM21. A dataset function that batches for everybody feeds each replica a whole batch
#
# Training on several devices takes fewer steps per epoch, and other ones, than on one device with the same batch size.
#
# *Silent, as soon as there are two replicas; Keras has no part in it. The loud relatives of this mistake are in the claims and in
# the exercise. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm21",
    slug="dataset_misdistributed",
    title="A dataset function that batches for everybody feeds each replica a whole batch",
    sees="each step takes in more examples with every device, and the training is another one",
    fix="batch by `context.get_per_replica_batch_size(size)` in a dataset function",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"a step takes in \d+ examples, and a global batch is 8",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim(
            "003-C4",
            "`distribute_datasets_from_function` expects batches per replica, and does not rebatch",
            "true",
        ),
        Claim(
            "003-C5",
            "`experimental_distribute_dataset` divides the global batch by the replicas",
            "true",
        ),
        Claim("003-C6", "a distributed dataset cannot be transformed any more", "true"),
        Claim("003-C7", "`element_spec` serves as an input signature", "true"),
        Claim("003-C8", "each worker gets a part of its own, if the policy is right", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm21", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The data come from a function, `distribute_datasets_from_function(make)`, because somebody wanted to shard by hand. It is the
# same pipeline as before, with the same `.batch(8)` at its end, and you count on the strategy to divide it: the other method,
# `experimental_distribute_dataset`, does.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, runner

GLOBAL, EXAMPLES, RATE = 8, 64, 0.1


def examples():
    return np.random.default_rng(0).normal(loc=1.0, size=EXAMPLES).astype("float32")


def make_weight():
    return tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)


def is_coordinator(strategy):
    """With parameter servers the coordinator is the only replica here, and its data need no division."""
    return isinstance(strategy, tf.distribute.ParameterServerStrategy)


def from_function(strategy, make):
    if is_coordinator(strategy):
        return make(tf.distribute.InputContext())
    return strategy.distribute_datasets_from_function(make)


def part_of(context):
    """The examples of one worker, one by one."""
    dataset = tf.data.Dataset.from_tensor_slices(examples())
    return dataset.shard(context.num_input_pipelines, context.input_pipeline_id)


def train(setup, make):
    """One epoch, in steps whose gradients are divided by the global batch; each copy of the weight."""
    strategy = build_strategy(setup)
    with strategy.scope():
        weight = make_weight()

    def step(batch):
        gradient = tf.reduce_sum(2.0 * (weight.read_value() - batch)) / GLOBAL
        weight.assign_sub(RATE * gradient)

    run = runner(strategy)
    for batch in from_function(strategy, make):
        checks.assert_global_batch(strategy, batch, GLOBAL)
        run(step, args=(batch,))
    copies = [float(each) for each in strategy.experimental_local_results(weight)]
    alone = 0.0
    for batch in np.split(examples(), EXAMPLES // GLOBAL):
        alone -= RATE * np.mean(2.0 * (alone - batch))
    return Proof("every copy of the weight is that of one device", copies, [alone] * len(copies))


# %%
@experiment
def broken(setup):
    def make(context):
        dataset = part_of(context)
        return dataset.batch(GLOBAL)  # guilty: each replica takes a batch of its own

    return train(setup, make)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Two methods, two bargains. `experimental_distribute_dataset` is handed a dataset and rewrites it: it divides each batch among
# the replicas. `distribute_datasets_from_function` is handed a function, calls it once per worker, and leaves the result alone:
# in every step each replica takes the *next* batch from it. A batch of eight then feeds sixteen examples to two replicas, and
# sixty-four to a TPU with eight cores. A gradient divided by eight is now too large by as much, and the epoch has fewer steps.
#
# Nothing is said, since a strategy cannot know which size you meant. The picture counts the examples of the first step. See
# [the guide on distributed
# input](https://www.tensorflow.org/tutorials/distribute/input#tfdistributestrategydistribute_datasets_from_function).


# %%
def divided(strategy, dataset):
    return (
        dataset if is_coordinator(strategy) else strategy.experimental_distribute_dataset(dataset)
    )


def numbers(count=EXAMPLES):
    return tf.data.Dataset.range(count)


def one_batch_each(strategy):
    return from_function(strategy, lambda context: numbers().batch(GLOBAL))


def one_part_each(strategy):
    return from_function(
        strategy, lambda context: numbers().batch(context.get_per_replica_batch_size(GLOBAL))
    )


def one_divided(strategy):
    return divided(strategy, numbers().batch(GLOBAL))


def none_at_all(strategy):
    return divided(strategy, numbers())


def takes_eight(data, setup):
    strategy = build_strategy(setup)
    try:
        checks.assert_global_batch(strategy, next(iter(data(strategy))), GLOBAL)
    except (checks.SilentFailure, IndexError, TypeError):  # without batches there is no size
        return False
    return True


two = clinic.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
WAYS = {
    "a function, batch(8)": one_batch_each,
    "a function, batch(8 / replicas)": one_part_each,
    "a dataset, batch(8)": one_divided,
    "a dataset without batch": none_at_all,
}
PLACES = [one, two, two.but(devices=4), traced]
FOUND = {way: [takes_eight(data, place) for place in PLACES] for way, data in WAYS.items()}
NAMES = ["mirrored x1", "mirrored x2", "mirrored x4", "TPU x8"]
figures.grid(FOUND, NAMES, "8", "not 8", "How many examples are in the first step?")

# %% [markdown]
# ## The fix
#
# Ask the context that the function is given. It knows the replicas, and it raises if they cannot share the batch evenly. The
# weight after one epoch is then that of one device. `checks.assert_global_batch(strategy, batch, size)` raises where TensorFlow
# is silent.


# %%
@experiment
def fixed(setup):
    def make(context):
        dataset = part_of(context)
        return dataset.batch(context.get_per_replica_batch_size(GLOBAL))  # repair

    return train(setup, make)


clinic.proves(fixed)

# %%
SETUPS = [one, two, two.but(devices=4), two.but(keras=clinic.setup.other_keras)]
SETUPS += [one.but(strategy="default"), two.but(strategy="central_storage"), traced]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device: the failure is gone, which is how it gets past everybody who tries a script on a laptop first.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, says all of this; it says it in the third sentence of a paragraph about something else. Its example
# of a divided dataset gives what it prints. How data are cut for several workers is asked of the function that cuts them.

# %% tags=["claims"]
from tensorflow.python.distribute import input_ops


def sizes(strategy, batch):
    return [len(part) for part in strategy.experimental_local_results(batch)]


def printed_example(strategy):
    """The example of the document: numbers from 0 to 3 in batches of two, doubled."""
    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    results = [strategy.run(lambda part: part * 2, args=(each,)) for each in batches]
    return [[int(part[0]) for part in strategy.experimental_local_results(r)] for r in results]


def takes_signature(strategy):
    """One trace for all batches, and the sum of what it has seen."""
    batches, traces = one_divided(strategy), []

    @tf.function(input_signature=[batches.element_spec])
    def step(batch):
        traces.append(1)
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)

    return [sum(int(step(each)) for each in batches) == sum(range(EXAMPLES)), len(traces) == 1]


def shards(policy):
    """What each of two workers would see of the numbers from 0 to 7 in batches of two."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    dataset = numbers(8).batch(2).with_options(options)
    try:
        parts = [input_ops.auto_shard_dataset(dataset, 2, worker) for worker in (0, 1)]
        return [[batch.numpy().tolist() for batch in part] for part in parts]
    except tf.errors.NotFoundError:
        return "no files to share"


pair, POLICY = build_strategy(two), tf.data.experimental.AutoShardPolicy
APART = [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
clinic.judges(
    {
        "003-C4": [
            sizes(pair, next(iter(one_batch_each(pair)))) == [8, 8],
            sizes(pair, next(iter(one_part_each(pair)))) == [4, 4],
        ],
        "003-C5": [
            sizes(pair, next(iter(one_divided(pair)))) == [4, 4],
            printed_example(pair) == [[0, 2], [4, 6]],
        ],
        "003-C6": [
            not hasattr(one_divided(pair), name) for name in ("map", "batch", "take", "shuffle")
        ],
        "003-C7": takes_signature(pair),
        "003-C8": [
            shards(POLICY.DATA) == APART,
            shards(POLICY.AUTO) == APART,
            shards(POLICY.OFF) == [[[0, 1], [2, 3], [4, 5], [6, 7]]] * 2,
            shards(POLICY.FILE) == "no files to share",
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script scales its numbers after they have been divided, and raises. Change it so that the replicas get the scaled numbers.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    batches = divided(strategy, numbers(16).batch(GLOBAL))
    batches = batches.map(lambda number: number * 10)
    got = [strategy.gather(batch, axis=0) for batch in batches]
    want = np.split(np.arange(16) * 10, 2)
    return Proof("the replicas have got the scaled numbers", got, want)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    scaled = numbers(16).map(lambda number: number * 10)
    batches = divided(strategy, scaled.batch(GLOBAL))
    got = [strategy.gather(batch, axis=0) for batch in batches]
    want = np.split(np.arange(16) * 10, 2)
    return Proof("the replicas have got the scaled numbers", got, want)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): a batch that the replicas cannot share evenly.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the same change of the global batch, made by a restart.
