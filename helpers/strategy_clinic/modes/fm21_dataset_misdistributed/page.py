# %% [markdown]
# # FM21. `distribute_datasets_from_function` with the global batch size: each replica gets a whole batch
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `one epoch: 4 steps of 16 examples` | a dataset function on two devices; 8 steps of 8 on one | 2, 3 |
# | `AttributeError: 'DistributedDataset' object has no attribute 'map'` | `map`, `take`, `shuffle` or `batch` of a distributed dataset | 2, 3 |
# | `TypeError: object of type 'DistributedDataset' has no len()` | `len` of a distributed dataset | 2, 3 |
# | `` ValueError: The `global_batch_size` 7 is not divisible by `num_replicas_in_sync` 2 `` | `get_per_replica_batch_size` | 2, 3 |
# | `TypeError: make() takes 0 positional arguments but 1 was given` | a dataset function without an argument: `def make(context)` | 2, 3 |
# | `Found an unshardable source dataset` | a warning with several workers: see FM48 | 2, 3 |
#
# `distribute_datasets_from_function` does not divide the batches that your function makes. Every replica takes a whole batch in
# each step.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm21",
    slug="dataset_misdistributed",
    title="`distribute_datasets_from_function` with the global batch size: each replica gets a whole batch",
    sees="with each additional device a step has more examples, and an epoch has fewer steps",
    fix="batch by `context.get_per_replica_batch_size(size)` in a dataset function; call `map` and `len` before you distribute",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'one epoch: (4 steps of 16|2 steps of 32|1 steps of 64) examples'",
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
        Claim(
            "003-C45",
            "the function is called on the CPU of each worker, and each replica takes a batch",
            "true",
        ),
        Claim("003-C46", "sharding by hand avoids that each worker reads all data", "true"),
        Claim("003-C47", "infinite datasets are sharded by their random seeds", "true"),
        Claim("003-C48", "`InputOptions` control how this dataset is distributed", "half"),
        Claim(
            "003-C49", "a worker divides its part among its devices, whatever the policy", "true"
        ),
        Claim(
            "003-C50",
            "in each step the workers process different parts of the global batch",
            "true",
        ),
        Claim("003-C51", "a prefetch of as many batches as there are replicas is added", "true"),
    ),
    prints="one epoch: 8 steps of 8 examples",
    exercise_prints="sums of 16 numbers: [120, 376]",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so no batch is divided"
    },
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
# ## The program
#
# The data are sharded by hand, so the dataset comes from a function. It ends with the batch size of one device. In place of a
# training step, the program counts the examples of each step.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Ask the context that the function gets. `context.get_per_replica_batch_size(8)` divides 8 by the number of replicas, and raises
# if that is not a whole number.
#
# If you *want* the larger batch, keep the function, and divide the loss of your step by `8 * strategy.num_replicas_in_sync`.
#
# If you train with `fit`, do not use this method: `fit` of Keras 3 takes one step more than the data have, and warns `Your input
# ran out of data`. Give `fit` a plain `tf.data.Dataset` in batches of the global size; Keras divides each batch.
#
# The folded cell after the program prints a check. Call it once, on `next(iter(batches))`, before training. It gathers the whole
# batch, and it raises for a smaller last batch, so do not call it in the loop.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_global_batch))

# %% [markdown]
# ## Why
#
# `experimental_distribute_dataset` gets a dataset and rebatches it: each of n replicas gets 8/n examples per step.
# `distribute_datasets_from_function` gets a function. It calls the function once for each worker and does not rebatch the
# result. In each step, every replica takes the *next* batch.
#
# A step that divides its gradients by the global batch size is then too large by the number of replicas, and an epoch has fewer
# steps. Nothing is raised, because a strategy does not know the global batch size.
#
# The picture counts the examples of a step. See [the guide on distributed
# input](https://www.tensorflow.org/tutorials/distribute/input#tfdistributestrategydistribute_datasets_from_function).

# %% tags=["figure"]
# The program above with other ways to distribute the same numbers, on one, two and four devices.
from strategy_clinic import figures

LINE = "batches = strategy.distribute_datasets_from_function(make)"
DATASET = "batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(64).batch(8))"
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
WAYS = {
    "function, batch(8)": session.texts["broken"],
    "function, batch(8 / replicas)": session.texts["fixed"],
    **session.variants("broken", LINE, {"dataset, batch(8)": DATASET}),
}
printed = session.prints(WAYS, PLACES)
COUNTS = {way: [words.split()[-2] for words in row] for way, row in printed.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(COUNTS, COLUMNS, ("16", "32"), "How many examples does a step have?")

# %% [markdown]
# ## Try other setups
#
# With one device the failure is gone, so a first try on a laptop does not show it. With eight, the epoch is one step.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, with the other version of Keras, and with two processes:

# %% tags=["table"]
other = two.but(keras=session.setup.other_keras)
session.table([*PLACES, other, two.but(strategy="multi_worker")])

# %% [markdown]
# ## Exercise
#
# This evaluation adds up each 16 numbers. On two replicas it prints one sum instead of two. Change one line.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## What documents say
#
# The [reference of `TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy) says so, and is right:
#
# > It is expected that the returned dataset from dataset_fn is already batched by per-replica batch size (i.e. global batch size
# > divided by the number of replicas in sync) and sharded.
#
# What it says about several workers is tested with two processes, and with a private function of TensorFlow that shards a
# dataset. One of its options does more than it says: after `experimental_replication_mode=PER_REPLICA` for one dataset,
# `MirroredStrategy` uses it for all later ones.

# %% tags=["claims"]
# Tests what the reference says about both methods, with the numbers from 0 to 63 in batches of 8.
import tensorflow as tf
from tensorflow.python.distribute import input_ops

from strategy_clinic import build_strategy


def numbers(count=64):
    return tf.data.Dataset.range(count)


def from_function(strategy, size_of):
    return strategy.distribute_datasets_from_function(
        lambda context: numbers().batch(size_of(context))
    )


def divided(strategy):
    return strategy.experimental_distribute_dataset(numbers().batch(8))


def sizes(strategy, batches):
    """How many examples each replica gets in the first step."""
    return [len(part) for part in strategy.experimental_local_results(next(iter(batches)))]


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

    return [sum(int(step(each)) for each in batches) == sum(range(64)), len(traces) == 1]


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


def reads(dataset_of):
    """How many numbers a dataset reads to its end."""
    seen = []

    def produce(*limits):
        for number in range(*map(int, limits)):
            seen.append(number)
            yield number

    for _ in dataset_of(produce):
        pass
    return len(seen)


def of_first_worker(produce):
    every = tf.data.Dataset.from_generator(produce, args=(0, 8, 1), output_signature=NUMBER)
    return input_ops.auto_shard_dataset(every.batch(2), 2, 0)


def of_first_by_hand(produce):
    mine = tf.data.Dataset.from_generator(produce, args=(0, 8, 2), output_signature=NUMBER)
    return mine.batch(2)


def endless(context):
    seed = 7 + context.input_pipeline_id
    return tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=False).batch(4)


def first_of_worker(make, worker):
    return next(iter(make(tf.distribute.InputContext(2, worker, 2)))).numpy().tolist()


def first_parts(strategy, options=None):
    """What each replica gets first from a dataset function, with these options."""
    batches = strategy.distribute_datasets_from_function(lambda _: numbers().batch(2), options)
    parts = strategy.experimental_local_results(next(iter(batches)))
    return [part.numpy().tolist() for part in parts]


def on_devices(strategy, options=None):
    """The devices that have the parts of the first batch of a dataset, with these options."""
    batches = strategy.experimental_distribute_dataset(numbers().batch(8), options)
    parts = strategy.experimental_local_results(next(iter(batches)))
    return [part.device[-5:] for part in parts]


def prefetched(strategy):
    """The sizes of the buffers in the dataset that a worker reads, as far as TensorFlow shows them."""
    sizes, todo = [], list(divided(strategy)._cloned_datasets)
    while todo:
        dataset = todo.pop()
        sizes += [int(dataset._buffer_size)] if "Prefetch" in type(dataset).__name__ else []
        todo += dataset._inputs()
    return sizes


FIT = """
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
rows = tf.data.Dataset.from_tensors((tf.ones(1), tf.ones(1))).repeat(32)
made = strategy.distribute_datasets_from_function(lambda context: rows.batch(4))
model.fit({}, verbose=0)
print(int(model.optimizer.iterations.numpy()))
"""
WORKERS = """
calls = []


def make(context):
    calls.append("CPU" in tf.constant(1).device)
    return tf.data.Dataset.range(64).batch(2)


def results(batches):
    return strategy.experimental_local_results(next(iter(batches)))


made = results(strategy.distribute_datasets_from_function(make))
parts = results(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(8)))
total = strategy.run(tf.reduce_sum, args=(next(iter(
    strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(8)))),))
print(calls, [part.numpy().tolist() for part in made], len(parts[0]),
      int(strategy.reduce("SUM", total, axis=None)))
"""
HEAD = session.texts["broken"].partition("\n\ndef make")[0]
((here, workers),) = session.prints(
    {"": HEAD + WORKERS}, [two, two.but(strategy="multi_worker")]
).values()
if session.setup.keras == 3:
    fits = {given: HEAD + FIT.format(given) for given in ("made", "rows.batch(8)")}
    assert list(session.prints(fits, [two]).values()) == [["5"], ["4"]]
NUMBER, MODE_OF = tf.TensorSpec((), tf.int64), tf.distribute.InputReplicationMode
fetched = tf.distribute.InputOptions(experimental_fetch_to_device=False)
per_replica = tf.distribute.InputOptions(
    experimental_fetch_to_device=False,
    experimental_place_dataset_on_device=True,
    experimental_replication_mode=MODE_OF.PER_REPLICA,
)
again = build_strategy(two)
with_options = [first_parts(again, each) for each in (None, per_replica, None)]
pair, POLICY = build_strategy(two), tf.data.experimental.AutoShardPolicy
four = build_strategy(two.but(devices=4))


def with_policy(strategy, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return strategy.experimental_distribute_dataset(numbers().batch(8).with_options(options))


APART = [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
session.judges(
    {
        "003-C4": [
            sizes(pair, from_function(pair, lambda context: 8)) == [8, 8],
            sizes(pair, from_function(pair, lambda context: context.get_per_replica_batch_size(8)))
            == [4, 4],
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
        # One call for two replicas, which take a batch each; one for each of two workers, with one replica.
        "003-C45": [
            here.startswith("[True] [[0, 1], [2, 3]]"),
            workers.startswith("[True] [[0, 1]]"),
        ],
        "003-C46": [reads(of_first_worker) == 8, reads(of_first_by_hand) == 4],
        "003-C47": [first_of_worker(endless, 0) != first_of_worker(endless, 1)],
        "003-C48": [
            on_devices(pair, fetched) == ["CPU:0", "CPU:0"],
            on_devices(pair) == ["CPU:0", "CPU:1"],
            with_options[:2] == [[[0, 1], [2, 3]], [[0, 1], [0, 1]]],
            with_options[2] == with_options[0],
        ],
        "003-C49": [
            sizes(pair, with_policy(pair, policy)) == [4, 4] for policy in (POLICY.OFF, POLICY.DATA)
        ],
        "003-C50": [here.endswith("4 28"), workers.endswith("4 28")],
        "003-C51": [prefetched(place) == [place.num_replicas_in_sync] for place in (pair, four)],
    },
)

# %% [markdown]
# ## Read next
#
# - [FM19](fm19_partial_last_batch.ipynb): a batch that the replicas cannot share evenly.
# - [FM26](fm26_replica_count_changed.ipynb): the same change of the global batch, after a restart.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the right batch, and a loss divided by the wrong number.
# - [FM42](fm42_input_runs_out.ipynb): the data end before the last step.
# - [FM48](fm48_file_sharding.ipynb): a dataset that is not sharded, since it has fewer files than there are workers.
