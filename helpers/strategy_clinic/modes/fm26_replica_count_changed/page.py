# %% [markdown]
# # FM26. Resuming on another number of replicas changes the training
#
# A model that was saved on one device loads on four and predicts what it predicted before. Its next training step takes in four
# times as many examples, and ends at other weights.
#
# ```text
# examples in the next step: 32, before the restart 8
# a weight after the next step: 0.482, without a restart 0.368
# ```
#
# *Silent. Strategy and device count matter; the save format does not. From document 004, "Does `keras.models.load_model` function
# correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm26",
    slug="replica_count_changed",
    title="Resuming on another number of replicas changes the training",
    sees="a model saved on one device loads on several, predicts the same, and trains differently",
    fix="keep the examples per step: give each replica `batch // strategy.num_replicas_in_sync`",
    document="004",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"not so: the next step ends at the weights of an uninterrupted run",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim(
            "004-C3",
            "a model saved without a strategy may fail to load under `MirroredStrategy`",
            "false",
        ),
        Claim("004-C4", "loading on another number of devices leads to crashes", "false"),
        Claim("004-C13", "a checkpoint must be restored under the same strategy", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 4
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm26", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Yesterday's run was on one device, and each step took in 8 examples. Today there are four devices. You believe that the file is
# the risk, so you load it in the scope and compare predictions: they are equal. The script goes on as it was written, with 8
# examples for each replica.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import (
    Proof,
    build_strategy,
    checks,
    experiment,
    figures,
    formats,
    observe,
    text_table,
)

STEPS, BATCH = 2, 8


def model_with(optimizer):
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((3,)), dense])
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def make_model():
    return model_with(tf.keras.optimizers.SGD(0.1))


def examples(number, count):
    """The first `count` examples of a step; a larger batch begins with the smaller one."""
    return np.random.default_rng(number).normal(size=(count, 3)).astype("float32")


def step_for(model, each, together):
    """What one replica does: its part of the examples, and its part of the mean over all of them."""

    def step(data):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        mine = tf.slice(data, [replica * each, 0], [each, 3])
        with tf.GradientTape() as tape:
            wanted = tf.reduce_sum(mine, axis=1, keepdims=True)
            loss = tf.reduce_sum(tf.square(model(mine) - wanted)) / together
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    return step


def train(strategy, model, numbers, each):
    """These steps, with `each` examples for every replica."""
    together = each * strategy.num_replicas_in_sync
    step = step_for(model, each, together)

    @tf.function
    def train_step(data):
        strategy.run(step, args=(data,))

    for number in numbers:
        train_step(tf.constant(examples(number, together)))


def save_yesterday(folder, save_format):
    """Trains on one device and saves; returns the weights after one more step, had nothing come between."""
    alone, model = tf.distribute.get_strategy(), make_model()
    train(alone, model, range(STEPS), BATCH)
    formats.save(model, folder, save_format)
    observe(saved=model.variables)
    train(alone, model, [STEPS], BATCH)
    return model.get_weights()


def resume(folder, save_format):
    """A model with the saved weights. Plain SGD has no slot variables, so a new one can go on."""
    loaded, model = formats.load(folder, save_format, make_model), make_model()
    model.set_weights([tf.convert_to_tensor(each).numpy() for each in loaded.variables])
    observe(loaded=model.variables)
    return model


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        want = save_yesterday(folder, setup.save_format)
        with strategy.scope():
            model = resume(folder, setup.save_format)
    each = BATCH  # guilty: as many for each replica as before, so more of them together
    train(strategy, model, [STEPS], each)
    return Proof(
        "the next step ends at the weights of an uninterrupted run", model.get_weights(), want
    )


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The number of replicas is in no file. A saved variable is one array, and loading gives it to every copy that the scope makes.
#
# The number of replicas is in the *script*. A batch size for each replica times the number of replicas is the global batch size.
# With four replicas one step takes in four times as many examples. The gradient has less noise, an epoch has fewer steps, and
# the learning rate was chosen for another batch.
#
# [TensorFlow's tutorial](https://www.tensorflow.org/tutorials/distribute/keras#set_up_the_input_pipeline) multiplies in this way,
# `BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync`. That suits a new training. The picture shows the step after a restart.


# %%
def next_step(count):
    """The first weight after the step that follows the restart, with the batch size of the broken script."""
    strategy = build_strategy(session.setup.but(strategy="mirrored", devices=count))
    with tempfile.TemporaryDirectory() as folder:
        save_yesterday(folder, "keras")
        with strategy.scope():
            model = resume(folder, "keras")
    train(strategy, model, [STEPS], BATCH)
    return float(model.get_weights()[0][0, 0])


def bars(weights):
    """A bar of examples for each number of replicas; green is what the run took before the restart."""
    figure, axes = figures.canvas(6.4, 1.7)
    told = {}
    for row, (count, weight) in enumerate(weights.items()):
        together, right = BATCH * count, count == 1
        axes.barh(row, together, color=figures.HAVE if right else figures.LACK)
        axes.text(together + 0.5, row, f"weight {weight:.3f}", color=figures.INK, va="center")
        told[count] = f"{together} examples in the step, weight {weight:.3f} after it"
    axes.set_yticks(range(len(told)), [f"{count} replica{'s' * (count > 1)}" for count in told])
    axes.set_xticks([BATCH * count for count in told])
    axes.set_xlabel("examples in the step after the restart", color=figures.INK)
    axes.set_xlim(0, 42)
    axes.invert_yaxis()
    alt = "\n".join(f"{count} replicas: {text}" for count, text in told.items())
    return figures.as_picture(figure, alt)


bars({count: next_step(count) for count in (1, 2, 4)})

# %% [markdown]
# ## The fix
#
# Decide how many examples one step takes in, save that number with the run, and divide it by the replicas that you have. `fit`
# divides `batch_size` itself, so do not multiply it. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()  # two devices; the run before had one
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
#     model.compile(tf.keras.optimizers.SGD(0.25), "mse")
# batch = 8 * strategy.num_replicas_in_sync
# model.fit(tf.ones((64, 1)), tf.ones((64, 1)), batch_size=batch, verbose=0)
# print(model.get_weights()[0])  # [[0.9375]]
# ```
#
# After, with the weight that one device reaches:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()  # two devices; the run before had one
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
#     model.compile(tf.keras.optimizers.SGD(0.25), "mse")
# batch = 8  # of all replicas together
# model.fit(tf.ones((64, 1)), tf.ones((64, 1)), batch_size=batch, verbose=0)
# print(model.get_weights()[0])  # [[0.99609375]]
# ```
#
# In a loop of your own the part of one replica is `batch // strategy.num_replicas_in_sync`; in an input function it is
# `context.get_per_replica_batch_size(batch)`. `checks.assert_same_global_batch(strategy, each, batch)` raises where the global
# batch has changed. `from strategy_clinic import pasted`, and `print(pasted(checks.assert_same_global_batch))` prints it.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        want = save_yesterday(folder, setup.save_format)
        with strategy.scope():
            model = resume(folder, setup.save_format)
    each = BATCH // strategy.num_replicas_in_sync  # repair: as many together as before
    checks.assert_same_global_batch(strategy, each, BATCH)
    train(strategy, model, [STEPS], each)
    return Proof(
        "the next step ends at the weights of an uninterrupted run", model.get_weights(), want
    )


session.proves(fixed)

# %%
four = session.setup.but(strategy="mirrored", devices=4)
SETUPS = [four.but(devices=1), four, four.but(strategy="central_storage")]
SETUPS += [four.but(strategy="multi_worker", devices=2)]
SETUPS += [four.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device, and the failure is gone. Under `parameter_server` it is gone too: its workers do not step together, so one step
# is one replica's.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", expects errors and crashes:
#
# > Conversely, loading a model saved without a strategy into an environment employing `MirroredStrategy` can result in errors …
# > Finally, loading a model saved with `MirroredStrategy` onto a system with a different number of GPUs can lead to
# > inconsistencies in variable placement and potential crashes.
#
# and, of a checkpoint: "Must use the same strategy during loading". The run saves in three places, loads in five, and
# trains one step. No load fails, and a checkpoint brings the optimizer. What a format loses, it also loses on one device: see
# [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb).

# %% tags=["claims"]
mirrored = session.setup.but(strategy="mirrored", devices=2)
PLACES = {"default": mirrored.but(strategy="default", devices=1)}
PLACES |= {f"mirrored x{count}": mirrored.but(devices=count) for count in (2, 4)}
COUNTS = {"default": 1, "mirrored x2": 2, "mirrored x4": 4}
LOADS = [("default", True)]
LOADS += [(f"mirrored x{count}", inside) for count in (2, 4) for inside in (True, False)]


def with_memory():
    """A model whose optimizer has slot variables."""
    return model_with(tf.keras.optimizers.SGD(0.1, momentum=0.9))


def step_of_batch(strategy, model, number):
    """One eager step, with the same number of examples on any number of replicas."""
    step = step_for(model, BATCH // strategy.num_replicas_in_sync, BATCH)
    strategy.run(step, args=(tf.constant(examples(number, BATCH)),))


def state_of(model):
    """Predictions and the optimizer's variables; a SavedModel is a graph to call and has no optimizer."""
    predicted = np.asarray(getattr(model, "serve", model)(tf.constant(examples(9, 2))))
    optimizer = getattr(model, "optimizer", None)
    return predicted, [figures.values_of(each)[0] for each in getattr(optimizer, "variables", [])]


def same(got, want):
    return len(got) == len(want) and all(np.allclose(g, w, atol=1e-6) for g, w in zip(got, want))


def save_under(name, folder, save_format):
    """Trains and saves under a strategy; returns the state that was saved, and the weights one step later."""
    strategy = build_strategy(PLACES[name])
    with strategy.scope():
        model = with_memory()
    for number in range(STEPS):
        step_of_batch(strategy, model, number)
    formats.save(model, folder, save_format)
    saved = state_of(model)
    step_of_batch(strategy, model, STEPS)
    return saved, model.get_weights()


def load_under(name, inside, folder, save_format, saved, later):
    """Loads under a strategy: on how many devices it is, and whether all is as if nothing had come between."""
    strategy = build_strategy(PLACES[name])
    with strategy.scope() if inside else contextlib.nullcontext():
        model = formats.load(folder, save_format, with_memory)
    # What was loaded outside the scope is not the strategy's, so it trains without it.
    trains = strategy if inside else tf.distribute.get_strategy()
    predicted, memory = state_of(model)
    found = [len(figures.copies(model.variables[0])), same([predicted], saved[:1])]
    try:
        step_of_batch(trains, model, STEPS)
        resumed = "equal" if same(model.get_weights(), later) else "differs"
    except (AttributeError, TypeError, ValueError):
        resumed = "raises"
    return [*found, same(memory, saved[1]), resumed]


def save_and_load(name, loads, save_format):
    """One row of the matrix: saved once, loaded in many ways."""
    with tempfile.TemporaryDirectory() as folder:
        saved = save_under(name, folder, save_format)
        return {way: load_under(*way, folder, save_format, *saved) for way in loads}


MATRIX = {
    (save_format, name): save_and_load(name, LOADS, save_format)
    for save_format in formats.TABLE
    for name in PLACES
}


def always(save_format, part):
    """One word for all the ways to save and load, if there is one."""
    cells = [
        cell for (name, _), row in MATRIX.items() if name == save_format for cell in row.values()
    ]
    found = dict.fromkeys({True: "yes", False: "no"}.get(cell[part], cell[part]) for cell in cells)
    return ", ".join(found)


print(f"Each line: saved in {len(PLACES)} places, and loaded in {len(LOADS)} ways from each")
HEAD = ["format", "same predictions", "same optimizer", "next step"]
print(
    text_table(
        [HEAD] + [[name, *(always(name, part) for part in (1, 2, 3))] for name in formats.TABLE]
    )
)

SCOPED = [way for way in LOADS if way[0] != "default" and way[1]]
OTHER = [
    cell
    for (_, name), row in MATRIX.items()
    for way, cell in row.items()
    if COUNTS[name] != COUNTS[way[0]]
]
CHECKPOINT = [MATRIX["checkpoint", name][way] for name in PLACES for way in LOADS]
session.judges(
    {
        # Loading would have raised, or the model would predict something else.
        "004-C3": [not MATRIX[each, "default"][way][1] for each in formats.TABLE for way in SCOPED],
        "004-C4": [not cell[1] for cell in OTHER],
        "004-C13": [cell[1:] != [True, True, "equal"] for cell in CHECKPOINT],
    },
)

# %% [markdown]
# ## Exercise
#
# This script gets its data from an input function, which TensorFlow calls for each worker. It was written on one device, where a
# step took in 8 examples. Change one line so that a step takes in 8 examples on any number of replicas.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def read(context):
        return tf.data.Dataset.range(64).batch(BATCH)

    data = strategy.distribute_datasets_from_function(read)
    together = strategy.gather(next(iter(data)), axis=0)
    return Proof("a step takes in as many examples as before", [len(together)], [BATCH])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def read(context):
        return tf.data.Dataset.range(64).batch(context.get_per_replica_batch_size(BATCH))

    data = strategy.distribute_datasets_from_function(read)
    together = strategy.gather(next(iter(data)), axis=0)
    return Proof("a step takes in as many examples as before", [len(together)], [BATCH])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): a model that loads and stays on one device.
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): the other reason why a resumed training is another one.
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): a loss that is averaged over one replica's part only.
# - [fm36 replica_group_resized](fm36_replica_group_resized.ipynb): another number of devices in one process.
