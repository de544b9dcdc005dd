# %% [markdown]
# # FM56. `Dropout` under `MirroredStrategy`: every replica draws the same random numbers
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `replicas that repeat a mask: 1` | two devices; 0 on one and on Keras 2, 3 on four | 3 |
# | `ValueError: You must specify an aggregation method to update a AggregatingVariable in Replica Context.` | central storage | 3 |
# | `ValueError: creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, …` | a layer that draws random numbers is created in the scope | 3.7 |
#
# In Keras 3, a layer that draws random numbers has one seed for all replicas. All of them drop the same units, add the same
# noise, or flip the images in the same places of their parts.
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy`, `MultiWorkerMirroredStrategy` and an emulated TPU.
# Such layers raise under central storage, and on Keras 3.7 when they are created.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm56",
    slug="same_random_numbers",
    title="`Dropout` under `MirroredStrategy`: every replica draws the same random numbers",
    sees="dropout masks, noise or augmentations are the same on all replicas, so training is somewhat noisier than on one device",
    fix="draw in a layer of your own with a `tf.random.Generator`, or with a seed that contains the replica's number",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'replicas that repeat a mask: [1-7]'",
            strategies=("mirrored", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
            since="keras 3.8",
        ),
        Symptom(
            "ValueError",
            r"creating distributed tf\.Variable with aggregation=MEAN and a non-floating dtype",
            strategies=("mirrored", "multi_worker"),
            keras=(3,),
            until="keras 3.8",
        ),
    ),
    prints="replicas that repeat a mask: 0",
    exercise_prints="replicas that repeat the noise: 0",
    unavailable={
        "central_storage": "Keras 3 raises there when a layer draws random numbers",
        "parameter_server": "its workers take their steps one by one, so no batch is divided",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm56", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Each replica drops units of one row of ones. The program counts the rows that repeat another.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Write a layer that draws from a `tf.random.Generator`. Created in the scope, it gives each replica its own numbers, also on
# several workers. For the same numbers in each run use `from_seed`, with another seed in each layer. Keras 2 does not need
# the layer, and cannot load the `.weights.h5` of a trained model with it under a strategy.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For the layers of Keras 3 as they are, patch the method that gives them their seeds, before the model is created. Test it with
# each new version:
#
# ```python
# plain = tf.keras.random.SeedGenerator.next
#
# def next_of_replica(generator, ordered=True):
#     seed, context = plain(generator, ordered), tf.distribute.get_replica_context()
#     if context is None:  # not in `strategy.run`
#         return seed
#     seed, replica = tf.cast(seed, tf.int64), context.replica_id_in_sync_group
#     return tf.cast(tf.random.experimental.stateless_fold_in(seed, replica), tf.uint32)
#
# tf.keras.random.SeedGenerator.next = next_of_replica
# ```
#
# `tf.nn.dropout` and `tf.random.normal` in a layer also draw other numbers on each replica of one process. On several workers
# `tf.random.set_seed(1)` makes them the same on each, as it does for the layers of Keras 2. Write there `tf.random.set_seed(1
# + task_id)`, and another number for a `chief`, whose `task_id` is 0, too.
#
# ## Why
#
# A `SeedGenerator` of Keras 3 holds a seed and a counter in one variable, which has the same value on all replicas. Random
# numbers are a function of these two, and the number of the replica is not part of it. In Keras 2 each has its own.
#
# No mask is wrong by itself, but each is used n times in a batch. The variance in the mean of a batch is up to n times as
# large, the more the rows are alike. A classifier of a thousand rows with `Dropout(0.5)` came to the same test loss on one,
# two and four devices (0.4 % apart, with a spread of 5 % over ten seeds).
#
# A program can make this mistake without Keras: with `tf.random.normal(shape, seed=5)`, or with `tf.random.stateless_normal` and
# one seed for all replicas. `clinic examine` reports such a line.
#
# Keras 3 documents nothing about replicas; TensorFlow
# [promises](https://www.tensorflow.org/api_docs/python/tf/random/Generator) "a different stream of random numbers" for each.
# Seen on virtual devices of a CPU; not reported yet: `upstream/dropout_same_mask.md` is ready.
#
# The tables show which layers repeat numbers, and the variance of a mean; the picture what two replicas drew.

# %% tags=["figure"]
# The program above with other layers on four devices, with both versions of Keras.
from strategy_clinic import figures

two = session.setup.but(strategy="mirrored", devices=2)
own, fixed = session.texts["broken"], session.texts["fixed"]
LAYER = "tf.keras.layers.Dropout(0.5)  # wrong: its seed_generator is one for all replicas"
OF_TENSORFLOW = """import tensorflow as tf


class Dropping(tf.keras.layers.Layer):
    def call(self, inputs, training=False):
        return tf.nn.dropout(inputs, rate=0.5) if training else inputs


"""
SEEDS = """import tensorflow as tf

plain = tf.keras.random.SeedGenerator.next


def next_of_replica(generator, ordered=True):
    seed, context = plain(generator, ordered), tf.distribute.get_replica_context()
    if context is None:
        return seed
    seed, replica = tf.cast(seed, tf.int64), context.replica_id_in_sync_group
    return tf.cast(tf.random.experimental.stateless_fold_in(seed, replica), tf.uint32)


tf.keras.random.SeedGenerator.next = next_of_replica
"""
LAYERS = {
    name: own.replace(LAYER, f"tf.keras.layers.{name}")
    for name in ("Dropout(0.5)", "AlphaDropout(0.5)", "GaussianNoise(0.1)", "GaussianDropout(0.5)")
}
WAYS = {
    "tf.random.Generator": fixed,
    "tf.nn.dropout": OF_TENSORFLOW + own.replace(LAYER, "Dropping()"),
}
KERAS_3 = {"SeedGenerator.next": SEEDS + own}
four = session.setup.but(strategy="mirrored", devices=4)
printed = session.prints({**LAYERS, **WAYS}, [four.but(keras=3), four.but(keras=2)])
printed |= {
    name: [*row, "not there"] for name, row in session.prints(KERAS_3, [four.but(keras=3)]).items()
}
REPEATED = {name: [words.split(": ")[-1] for words in row] for name, row in printed.items()}
figures.words(REPEATED, ["Keras 3", "Keras 2"], "3", "How many of 4 replicas repeat numbers?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% tags=["figure"]
# The two ways of TensorFlow on two workers with a seed: do they repeat numbers?
workers = four.but(strategy="multi_worker", devices=2)
SCOPE, GENERATOR = "with strategy.scope():\n", "from_non_deterministic_state()"
SEEDED = {
    "tf.random.Generator": fixed.replace(SCOPE, "tf.random.set_seed(1)\n" + SCOPE),
    "tf.random.Generator, from_seed(1)": fixed.replace(GENERATOR, "from_seed(1)"),
    "tf.nn.dropout": WAYS["tf.nn.dropout"].replace(SCOPE, "tf.random.set_seed(1)\n" + SCOPE),
    "tf.nn.dropout, 1 + task_id": WAYS["tf.nn.dropout"].replace(
        SCOPE, "tf.random.set_seed(1 + strategy.cluster_resolver.task_id)\n" + SCOPE
    ),
}
printed = session.prints(SEEDED, [workers])
SAME = {name: [words.split(": ")[-1] for words in row] for name, row in printed.items()}
figures.words(SAME, ["2 workers, one seed"], "1", "How many of 2 replicas repeat numbers?")

# %% tags=["figure"]
# `Dropout` for 8000 batches of 16 rows: the variance of their mean, in units of that with a mask for each row.
START = "def step():"
MEASURED = """rows = ROWS.astype("float32")
batches = tf.data.Dataset.from_tensor_slices(rows).batch(16)
(batch,) = strategy.experimental_distribute_dataset(batches)
drop = lambda part: dropout(tf.repeat(part[None], 500, 0), training=True)
step = tf.function(lambda: strategy.run(drop, args=(batch,)))
means = [np.mean(strategy.gather(step(), axis=1), axis=1) for _ in range(16)]
print(round(float(np.var(np.concatenate(means), axis=0).sum() / (rows**2).sum() * 256), 1))
"""
ROWS = {
    "equal rows": "np.ones((16, 64))",
    "ReLU of a normal distribution": "np.random.default_rng(8).normal(size=(16, 64)).clip(0)",
    "normal distribution": "np.random.default_rng(8).normal(size=(16, 64))",
}
PLACES = [four.but(devices=count) for count in (1, 2, 4)]
head = "import numpy as np\n" + own[: own.index(START)]
programs = {name: head + MEASURED.replace("ROWS", rows) for name, rows in ROWS.items()}
printed = session.prints(programs, PLACES)
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
LARGER = {word for row in printed.values() for word in row if float(word) > 1.1}
figures.words(printed, COLUMNS, LARGER, "How large is the variance of the mean of a batch?")

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, no mask is repeated.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, with two processes, and with the other version of Keras:

# %% tags=["table"]
others = [two.but(strategy="multi_worker"), two.but(keras=session.setup.other_keras)]
session.table([*PLACES, *others])

# %% [markdown]
# ## Exercise
#
# `GaussianNoise` adds the same numbers on all replicas. Change the program so that each replica adds its own, and it prints `0`.
# With Keras 2 it does so as it is.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM38](fm38_replica_state_diverges.ipynb): replicas whose state differs, although it should be the same.
# - [FM53](fm53_same_work_on_every_replica.ipynb): every replica processes the same examples.
# - [FM07](fm07_python_in_traced_step.ipynb): random numbers of NumPy in a step are drawn once for all steps.
# - [FM50](fm50_clipped_before_the_sum.ipynb): another bug of Keras 3 with several replicas.
