# %% [markdown]
# # FM56. `Dropout` under `MirroredStrategy`: every replica draws the same random numbers
#
# ```text
# replicas that repeat a mask: 0     on one device, and on Keras 2
# replicas that repeat a mask: 1     on two devices
# replicas that repeat a mask: 3     on four
# ValueError: creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, …
#                                    Keras 3.7, when the layer is created
# ValueError: You must specify an aggregation method to update a AggregatingVariable in Replica Context.
#                                    Keras 3 under central storage
# ```
#
# In Keras 3, a layer that draws random numbers has one seed for all replicas. All of them drop the same units, add the same
# noise, or flip the images in the same places of their parts.
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy`, `MultiWorkerMirroredStrategy` and `TPUStrategy`.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm56",
    slug="same_random_numbers",
    title="`Dropout` under `MirroredStrategy`: every replica draws the same random numbers",
    sees="dropout masks, noise or augmentations are the same on all replicas, so training is noisier than on one device",
    fix="draw in a layer of your own, with `tf.nn.dropout`, `tf.random.normal`, or a seed that contains the replica's number",
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
    claims=(),
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
# Each replica drops units of one row of ones. The program collects the rows of all replicas and counts those that are the same as
# another.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Write a layer that draws with a function of TensorFlow. Each replica has its own operation for it, with its own seed.
# `tf.random.set_seed` makes these numbers the same in each run of the program. The layer also works under central storage.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Two other ways keep the state of the random numbers in a variable, so that a checkpoint contains it:
#
# - A `tf.random.Generator` that is created in the scope of the strategy gives each replica its own numbers.
# - On Keras 3, let the method from which all layers get their seeds add the number of the replica. Do this before the model is
#   created:
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
# ## Why
#
# A `SeedGenerator` of Keras 3 holds a seed and a counter in one variable, which has the same value on all replicas. Random
# numbers are a function of these two, and the number of the replica is not part of it. In Keras 2 each replica has its own state.
#
# Is this harmful? No mask is wrong by itself, and the mean over many steps is right. But a batch has fewer different masks: on
# n replicas each one is used n times. The noise that dropout adds to the mean of a batch has n times the variance, as if the
# batch were n times smaller. Models with much dropout, noise or augmentation lose a part of what a larger batch brings.
#
# A program can make this mistake without Keras: with `tf.random.normal(shape, seed=5)`, or with `tf.random.stateless_normal` and
# a seed that is the same for all replicas. `clinic examine` reports such a line, and says in a note if a layer of Keras does so.
#
# This is a bug of Keras, in `keras/src/random/seed_generator.py`. `upstream/dropout_same_mask.md` is the report. A generator of
# TensorFlow is [documented](https://www.tensorflow.org/api_docs/python/tf/random/Generator) to give each replica "a different
# stream of random numbers".
#
# The tables show which layers repeat numbers on four replicas, and the variance of the mean of a batch of 16 rows.

# %% tags=["figure"]
# The program above with other layers on four devices, with both versions of Keras.
from strategy_clinic import figures

own, fixed = session.texts["broken"], session.texts["fixed"]
LAYER = "tf.keras.layers.Dropout(0.5)  # wrong: its seed_generator is one for all replicas"
GENERATOR = """import tensorflow as tf


class Drawing(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.generator = tf.random.Generator.from_non_deterministic_state()

    def call(self, inputs, training=False):
        kept = self.generator.uniform(tf.shape(inputs)) >= 0.5
        return tf.where(kept, 2.0 * inputs, 0.0) if training else inputs


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
    "tf.nn.dropout": fixed,
    "tf.random.Generator": GENERATOR + own.replace(LAYER, "Drawing()"),
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
# The program above, for 2000 batches of 16 rows at once: the variance of the mean, in rounded units of that on one device.
CALL, START = "tf.ones((1, 64)), training=True)", "masks = strategy"
PARTS = "tf.ones((2000, 16 // strategy.num_replicas_in_sync, 64)), training=True)"
MEANS = """means = strategy.reduce("MEAN", train_step(), axis=None).numpy().mean(axis=(1, 2))
print("variance:", round(float(means.var()) * 16 * 64, 1))
"""
PLACES = [four.but(devices=count) for count in (1, 2, 4)]
programs = {
    name: text[: text.index(START)].replace(CALL, PARTS) + MEANS
    for name, text in (("Dropout", own), ("tf.nn.dropout", fixed))
}
printed = session.prints(programs, PLACES)
VARIANCES = {
    name: [str(round(float(words.split(": ")[1]))) for words in row]
    for name, row in printed.items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(VARIANCES, COLUMNS, {"2", "4"}, "How large is the variance of the mean of a batch?")

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, no mask is repeated. With four devices, three are.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, with two processes, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
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
