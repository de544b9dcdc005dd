# %% [markdown]
# # FM42. One file that is read once is too little input for several workers and epochs
#
# You train for a fixed number of steps in each epoch. On several workers the first step raises. In one process the second epoch
# does; `fit` only warns, and makes an epoch without a step.
#
# ```text
# InvalidArgumentError: … Could not apply FILE based sharding: the dataset only has 1 file(s), which is not enough for the
# required 2 shards/workers. … consider setting the auto sharding policy to either DATA or OFF …
# OutOfRangeError: End of sequence
# ```
#
# *Loud in a loop of your own, silent with `fit`. The strategy chooses the message. Reported as
# [tensorflow#36846](https://github.com/tensorflow/tensorflow/issues/36846) and
# [#36153](https://github.com/tensorflow/tensorflow/issues/36153). The `TPUStrategy` reference (003) names the policy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm42",
    slug="input_ends_or_is_not_sharded",
    title="One file that is read once is too little input for several workers and epochs",
    sees="`Could not apply FILE based sharding`, `End of sequence`, or an epoch of `fit` with loss 0.0",
    fix="repeat the dataset, and set its auto-shard policy to `DATA` where there are fewer files than workers",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Could not apply FILE based sharding: the dataset only has \d+ file\(s\)",
            strategies=("multi_worker",),
        ),
        Symptom("OutOfRangeError", r"End of sequence"),
    ),
    claims=(),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm42", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The examples lie in one file, which holds as many as an epoch takes. You believe that each epoch begins with the first of them,
# and that a strategy deals them out to all workers, wherever they come from.

# %%
import tempfile
import warnings

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import input_ops

from strategy_clinic import Proof, build_strategy, experiment, figures

warnings.filterwarnings("ignore", "Your input ran out of data")  # see below; not for your script
warnings.filterwarnings("ignore", "`shuffle=True` was passed")
EXAMPLES, GLOBAL = 16, 8
EPOCHS, STEPS = 2, 2


def files_with(parts):
    """A folder with the numbers from 0 to 15, one in a line, in so many files."""
    folder = tempfile.TemporaryDirectory()
    for i, numbers in enumerate(np.array_split(np.arange(EXAMPLES), parts)):
        with open(f"{folder.name}/{i}.txt", "w") as file:
            file.write("".join(f"{number}\n" for number in numbers))
    return folder


def read(folder, parts=1):
    dataset = tf.data.TextLineDataset([f"{folder.name}/{i}.txt" for i in range(parts)])
    return dataset.map(lambda line: tf.strings.to_number(line))


def with_policy(dataset, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    return dataset.with_options(options)


def distributed(strategy, dataset):
    """The coordinator of parameter servers is the only replica here, and reads all of its input."""
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return dataset
    return strategy.experimental_distribute_dataset(dataset)


def train(strategy, dataset):
    """All steps of all epochs; how many examples they have taken in."""
    with strategy.scope():
        seen = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step(batch):
        seen.assign_add(tf.cast(tf.size(batch), tf.float32))

    @tf.function
    def train_step(batches):
        strategy.run(step, args=(next(batches),))

    batches = iter(distributed(strategy, dataset))
    for _ in range(EPOCHS * STEPS):
        train_step(batches)
    want = EPOCHS * STEPS * GLOBAL
    return Proof("every step of every epoch has a full batch", [int(seen.numpy())], [want])


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    folder = files_with(1)
    dataset = read(folder)  # guilty: one file, read once
    return train(strategy, dataset.batch(GLOBAL))


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# An iterator goes through a dataset once. A loop that takes a fixed number of steps, as `steps_per_epoch` does, goes on with the
# same iterator in the next epoch. For an array `fit` knows the length and begins anew. It does not know the length of a file, so
# the second epoch finds nothing. Its loss is reported as 0.0. Keras 2 stops there, Keras 3 makes a new iterator and goes on.
#
# Workers are separate processes, each with a pipeline of its own. To share the examples, TensorFlow rewrites the pipeline. The
# policy `AUTO` deals out whole *files* if it finds any, without counting them: fewer files than workers raise, on one worker,
# while the other waits for it. If it finds no files, it uses `DATA`: every worker reads all and keeps its share. `OFF` gives all
# examples to every worker.
#
# The pictures count the steps of each epoch of `fit`, and what two workers see. See [the guide on distributed
# input](https://www.tensorflow.org/tutorials/distribute/input#sharding).


# %%
def steps_of_fit(dataset, strategy=None):
    """How many steps each of three epochs of `fit` makes."""
    counts = [0, 0, 0]

    def begin(epoch, logs):
        counts.append(epoch)

    def note(batch, logs):
        counts[counts[-1]] += 1

    with (strategy or tf.distribute.get_strategy()).scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    noted = tf.keras.callbacks.LambdaCallback(on_epoch_begin=begin, on_train_batch_end=note)
    pairs = dataset.map(lambda number: (number[None] / EXAMPLES, tf.ones(1))).batch(GLOBAL)
    model.fit(pairs, epochs=3, steps_per_epoch=STEPS, callbacks=[noted], verbose=0)
    return counts[:3]


ONE = files_with(1)
ARRAY = tf.data.Dataset.from_tensor_slices(np.arange(EXAMPLES, dtype="float32"))
ENDLESS = {"one file": read(ONE), "one file, repeated": read(ONE).repeat(), "an array": ARRAY}
COUNTS = {name: steps_of_fit(dataset) for name, dataset in ENDLESS.items()}
COLUMNS = [f"epoch {number}" for number in (1, 2, 3)]
TOLD = {name: list(map(str, counts)) for name, counts in COUNTS.items()}
figures.words(TOLD, COLUMNS, "0", "Steps in each epoch of fit")


# %%
def seen_by(dataset, policy, worker):
    """What one of two workers gets, by TensorFlow's own rewriting of the pipeline."""
    sharded = input_ops.auto_shard_dataset(with_policy(dataset, policy), 2, worker)
    return [int(number) for batch in sharded for number in batch.numpy()]


def outcome(dataset, policy):
    try:
        first, second = (seen_by(dataset.batch(2), policy, worker) for worker in (0, 1))
    except tf.errors.OpError:
        return "raises"
    if sorted(first + second) != list(range(EXAMPLES)):
        return "all twice"
    return "halves" if len(first) == len(second) else "uneven"


NAMES = ("one file", "two files", "three files")
FOLDERS = {name: (files_with(i), i) for i, name in enumerate(NAMES, 1)}
SOURCES = {name: read(*folder) for name, folder in FOLDERS.items()} | {"an array": ARRAY}
POLICIES = ("AUTO", "FILE", "DATA", "OFF")
SHARES = {name: [outcome(source, each) for each in POLICIES] for name, source in SOURCES.items()}
BAD = ["raises", "uneven", "all twice"]
figures.words(SHARES, list(POLICIES), BAD, "What do two workers get?")

# %% [markdown]
# ## The fix
#
# Repeat the dataset, so that it never ends, and let `steps_per_epoch` say what an epoch is. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with open("data.txt", "w") as file:
#     file.write("1\n2\n3\n4\n")
# dataset = tf.data.TextLineDataset("data.txt").batch(2)
# batches = iter(strategy.experimental_distribute_dataset(dataset))
# train_step = tf.function(lambda: strategy.run(tf.size, args=(next(batches),)))
# for step in range(4):  # two epochs of two steps
#     train_step()  # OutOfRangeError: End of sequence
# ```
#
# After. The two lines with `options` are for several workers, where the first program raises at once:
#
# ```python
# import tensorflow as tf
#
# strategy, options = tf.distribute.MirroredStrategy(), tf.data.Options()
# options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
# with open("data.txt", "w") as file:
#     file.write("1\n2\n3\n4\n")
# dataset = tf.data.TextLineDataset("data.txt").repeat().batch(2).with_options(options)
# batches = iter(strategy.experimental_distribute_dataset(dataset))
# train_step = tf.function(lambda: strategy.run(tf.size, args=(next(batches),)))
# print(len([train_step() for step in range(4)]))  # 4
# ```
#
# With `DATA` every worker reads every file. If reading is slow, split the data into many files of equal size, a multiple of the
# number of workers, and keep `AUTO`. Use `OFF` where each worker already reads files of its own, or draws examples at random.
# Without `steps_per_epoch`, `fit` begins anew in each epoch, and needs no `repeat`.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    folder = files_with(1)
    dataset = with_policy(read(folder).repeat(), "DATA")  # repair
    return train(strategy, dataset.batch(GLOBAL))


session.proves(fixed)

# %%
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [two, two.but(strategy="default", devices=1), two.but(strategy="multi_worker")]
SETUPS += [two.but(strategy="tpu_traced", devices=8), two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `multi_worker`: the message is about files, and comes in the first step. All other strategies read the file in one
# process, and the second epoch raises.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy`, document 003, says that every worker gets a part of the dataset
#
# > if the right tf.data.experimental.AutoShardPolicy is set
#
# The default is not the right one for a single file. The answers to the report of 2020
# ([#36153](https://github.com/tensorflow/tensorflow/issues/36153)) advise
#
# > pass steps_per_epoch argument (and use repeat in your dataset accordingly for multiple epochs)
#
# The second half of that sentence is needed. With `steps_per_epoch` alone the picture has an epoch without a step. In TensorFlow
# 2.1 the same mistake on workers read "There aren't enough elements in this dataset for each shard to have at least one element"
# ([#36846](https://github.com/tensorflow/tensorflow/issues/36846)).

# %% [markdown]
# ## Exercise
#
# This script trains with `fit`, and nothing is raised. Its second epoch makes no step. Change what it reads, so that each epoch
# has two steps.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    folder = files_with(2)
    dataset = read(folder, 2)
    counts = steps_of_fit(dataset, strategy)
    return Proof("each of the three epochs has two steps", counts, [STEPS] * 3)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    folder = files_with(2)
    dataset = read(folder, 2).repeat()
    counts = steps_of_fit(dataset, strategy)
    return Proof("each of the three epochs has two steps", counts, [STEPS] * 3)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm21 dataset_misdistributed](fm21_dataset_misdistributed.ipynb): each replica takes a whole batch, so the input ends earlier.
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): the last batch is there, and too small for all replicas.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the steps of an epoch after the number of replicas changed.
# - [fm22 non_tensor_in_run](fm22_non_tensor_in_run.ipynb): other values that a step cannot take.
