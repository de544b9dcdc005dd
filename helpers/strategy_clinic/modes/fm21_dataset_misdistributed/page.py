# %% [markdown]
# # FM21. `distribute_datasets_from_function` with the global batch size: each replica gets a whole batch
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `one epoch: 4 steps of 16 examples` | a dataset function on two devices; 8 steps of 8 on one | 2, 3 |
# | no message: half of the steps on two devices, each with as many examples | a dataset with the batch of one replica, and steps for that of all | 2, 3 |
# | `AttributeError: 'DistributedDataset' object has no attribute 'map'` | `map`, `take`, `shuffle` or `batch` of a distributed dataset | 2, 3 |
# | `TypeError: object of type 'DistributedDataset' has no len()` | `len` of a distributed dataset | 2, 3 |
# | `` ValueError: The `global_batch_size` 7 is not divisible by `num_replicas_in_sync` 2 `` | `get_per_replica_batch_size` | 2, 3 |
# | `TypeError: make() takes 0 positional arguments but 1 was given` | a dataset function without an argument: `def make(context)` | 2, 3 |
#
# `distribute_datasets_from_function` does not divide the batches that your function makes. Every replica takes a whole batch in
# each step.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

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
# So the first method, and `fit`, need the size of the *whole* batch. With the size for one replica, a step has as many examples on any
# number of devices, and steps that are counted for `size * strategy.num_replicas_in_sync` leave out a part of the data.
#
# A step that divides its gradients by the global batch size is then too large by the number of replicas, and an epoch has fewer
# steps. Nothing is raised, because a strategy does not know the global batch size.
#
# One option has an effect on other datasets: after `experimental_replication_mode=PER_REPLICA` for one, `MirroredStrategy` uses
# it for all later ones.
#
# The first picture counts the examples of a step, and the second shows which examples each replica held. See [the guide on
# distributed
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

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

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

# %% tags=["tests"]
# Tests what `fit` makes of a dataset from a function.
FIT = """
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
rows = tf.data.Dataset.from_tensors((tf.ones(1), tf.ones(1))).repeat(32)
made = strategy.distribute_datasets_from_function(lambda context: rows.batch(4))
model.fit({}, verbose=0)
print(int(model.optimizer.iterations.numpy()))
"""
HEAD = session.texts["broken"].partition("\n\ndef make")[0]
if session.setup.keras == 3:
    fits = {given: HEAD + FIT.format(given) for given in ("made", "rows.batch(8)")}
    assert list(session.prints(fits, [two]).values()) == [["5"], ["4"]]

# %% [markdown]
# ## Read next
#
# - [FM19](fm19_partial_last_batch.ipynb): a batch that the replicas cannot share evenly.
# - [FM26](fm26_replica_count_changed.ipynb): the same change of the global batch, after a restart.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the right batch, and a loss divided by the wrong number.
# - [FM42](fm42_input_runs_out.ipynb): the data end before the last step.
# - [FM48](fm48_file_sharding.ipynb): a dataset that is not sharded, since it has fewer files than there are workers.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
