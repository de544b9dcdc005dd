# %% [markdown]
# # FM21. A dataset function that batches for everybody feeds each replica a whole batch
#
# You train on two devices with the code and the batch size of one device. Each step takes in twice the examples, an epoch has
# half the steps, and the weights come out wrong.
#
# ```text
# weight after one epoch on two devices -0.45, on one device 0.865
# ```
#
# *Silent, as soon as there are two replicas. Strategy and device count matter, Keras does not. From the `TPUStrategy`
# reference, document 003.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
            r"every copy of the weight is that of one device",
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
import strategy_clinic as clinic

session = clinic.open("fm21", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You want to shard the data by hand, so they come from a function, `distribute_datasets_from_function(make)`. The function is
# your old pipeline, with `.batch(8)` at its end. You expect the strategy to divide each batch of 8 among the replicas, as the
# other method, `experimental_distribute_dataset`, does.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

GLOBAL, EXAMPLES, RATE = 8, 64, 0.5


def examples():
    return np.random.default_rng(0).normal(loc=1.0, size=EXAMPLES).astype("float32")


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


def train(strategy, batches):
    """One epoch, in steps whose gradients are divided by the global batch size; each copy of the weight."""
    with strategy.scope():
        weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step(batch):
        gradient = tf.reduce_sum(2.0 * (weight.read_value() - batch)) / GLOBAL
        weight.assign_sub(RATE * gradient)

    @tf.function
    def train_step(batch):
        strategy.run(step, args=(batch,))

    for batch in batches:
        train_step(batch)
    copies = [float(each) for each in strategy.experimental_local_results(weight)]
    alone = 0.0
    for batch in np.split(examples(), EXAMPLES // GLOBAL):
        alone -= RATE * np.mean(2.0 * (alone - batch))
    return Proof("every copy of the weight is that of one device", copies, [alone] * len(copies))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def make(context):
        dataset = part_of(context)
        return dataset.batch(GLOBAL)  # guilty: each replica takes a batch of its own

    return train(strategy, from_function(strategy, make))


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `experimental_distribute_dataset` takes a dataset and rebatches it: each of n replicas gets 8/n examples per step.
# `distribute_datasets_from_function` takes a function. It calls the function once per worker, and does not rebatch what comes
# back. In each step, every replica takes the *next* batch. With `.batch(8)`, two replicas take in 16 examples per step, and
# four take in 32.
#
# The step divides the sum of the gradients by 8. Each update is therefore too large, by the number of replicas, and an epoch
# has fewer steps. Nothing is raised, because a strategy does not know the global batch size.
#
# The picture counts the examples of the first step. See [the guide on distributed
# input](https://www.tensorflow.org/tutorials/distribute/input#tfdistributestrategydistribute_datasets_from_function).


# %%
def numbers(count=EXAMPLES):
    return tf.data.Dataset.range(count)


def whole_batch(strategy):
    return from_function(strategy, lambda context: numbers().batch(GLOBAL))


def batch_per_replica(strategy):
    return from_function(
        strategy, lambda context: numbers().batch(context.get_per_replica_batch_size(GLOBAL))
    )


def divided(strategy):
    return strategy.experimental_distribute_dataset(numbers().batch(GLOBAL))


def sizes(strategy, batches):
    """How many examples each replica gets in the first step."""
    return [len(part) for part in strategy.experimental_local_results(next(iter(batches)))]


def in_a_step(way, setup):
    strategy = build_strategy(setup)
    return str(sum(sizes(strategy, way(strategy))))


two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
WAYS = {
    "a function, batch(8)": whole_batch,
    "a function, batch(8 / replicas)": batch_per_replica,
    "a dataset, batch(8)": divided,
}
FOUND = {name: [in_a_step(way, place) for place in PLACES] for name, way in WAYS.items()}
NAMES = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(FOUND, NAMES, ("16", "32"), "How many examples are in the first step?")

# %% [markdown]
# ## The fix
#
# Ask the context that the function is given. `context.get_per_replica_batch_size(8)` divides 8 by the number of replicas, and
# raises if that is not a whole number. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# def make(context):
#     return tf.data.Dataset.range(64).batch(8)
#
# batches = strategy.distribute_datasets_from_function(make)
# print(len(strategy.gather(next(iter(batches)), axis=0)))  # 16
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# def make(context):
#     return tf.data.Dataset.range(64).batch(context.get_per_replica_batch_size(8))
#
# batches = strategy.distribute_datasets_from_function(make)
# print(len(strategy.gather(next(iter(batches)), axis=0)))  # 8
# ```
#
# `checks.assert_global_batch(strategy, batch, size)` raises if the replicas of one step do not get `size` examples together.
# The experiment below calls it before each step. After `from strategy_clinic import pasted`,
# `print(pasted(checks.assert_global_batch))` prints it with all that it needs.


# %%
def checked(strategy, batches):
    for batch in batches:
        checks.assert_global_batch(strategy, batch, GLOBAL)
        yield batch


@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def make(context):
        dataset = part_of(context)
        return dataset.batch(context.get_per_replica_batch_size(GLOBAL))  # repair

    return train(strategy, checked(strategy, from_function(strategy, make)))


session.proves(fixed)

# %%
SETUPS = [*PLACES, two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device: the failure is gone, so a first try on a laptop does not show it. Then choose eight: the first step takes
# in all 64 examples, and the weight ends at 8.53.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference, document 003, says it in the paragraph on this method:
#
# > It is expected that the returned dataset from dataset_fn is already batched by per-replica batch size (i.e. global batch size
# > divided by the number of replicas in sync) and sharded.
#
# The run agrees. It also agrees with what the reference says of the other method:
#
# > rebatches dataset to a new batch size that is equal to the global batch size divided by the number of replicas in sync
#
# The example that the reference prints for it gives the numbers printed there. A distributed dataset has no `map` and no
# `batch`, and its `element_spec` serves as an input signature; both are as the reference says. The claim on several workers is
# tested on TensorFlow's own function that shards a dataset, without the workers.

# %% tags=["claims"]
from tensorflow.python.distribute import input_ops


def printed_example(strategy):
    """The example of the document: numbers from 0 to 3 in batches of two, doubled."""
    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    results = [strategy.run(lambda part: part * 2, args=(each,)) for each in batches]
    return [[int(part[0]) for part in strategy.experimental_local_results(r)] for r in results]


def takes_signature(strategy):
    """One trace for all batches, and the sum of what it has seen."""
    batches, traces = divided(strategy), []

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
session.judges(
    {
        "003-C4": [
            sizes(pair, whole_batch(pair)) == [8, 8],
            sizes(pair, batch_per_replica(pair)) == [4, 4],
        ],
        "003-C5": [
            sizes(pair, divided(pair)) == [4, 4],
            printed_example(pair) == [[0, 2], [4, 6]],
        ],
        "003-C6": [
            not hasattr(divided(pair), name) for name in ("map", "batch", "take", "shuffle")
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
# This evaluation reports the mean of each 16 numbers. With two replicas it reports one mean instead of two, and that mean is
# wrong. Change one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def make(context):
        mine = numbers(32).shard(context.num_input_pipelines, context.input_pipeline_id)
        return mine.batch(16)

    @tf.function
    def total(batch):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)

    means = [int(total(batch)) / 16 for batch in from_function(strategy, make)]
    return Proof("the means are those of the numbers", means, [7.5, 23.5])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def make(context):
        mine = numbers(32).shard(context.num_input_pipelines, context.input_pipeline_id)
        return mine.batch(context.get_per_replica_batch_size(16))

    @tf.function
    def total(batch):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)

    means = [int(total(batch)) / 16 for batch in from_function(strategy, make)]
    return Proof("the means are those of the numbers", means, [7.5, 23.5])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): a batch that the replicas cannot share evenly.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the same change of the global batch, made by a restart.
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): the right batch, and a loss divided by the wrong number.
