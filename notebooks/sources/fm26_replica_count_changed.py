# %% [markdown]
# # FM26. Resuming on another number of replicas changes the training
#
# A model that was saved on one device loads on four, predicts what it predicted before, and then trains differently.
#
# *Silent. Strategy and device count matter; the save format does not. From document 004.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
            r"one step takes in \d+ examples on \d+ replicas, and \d+ before the restart",
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
import helpers

clinic = helpers.open("fm26", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You expect trouble from the file, because it comes from another number of devices. So you load it, compare the predictions,
# find them equal, and relax. The script goes on with the batch size that it always had: so many examples for each replica.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats, observe, runner

STEPS, BATCH = 2, 8


def model_with(optimizer):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def make_model():
    return model_with(tf.keras.optimizers.SGD(0.1))


def examples(number, count):
    """The first `count` examples of a step; a larger batch begins with the smaller one."""
    return np.random.default_rng(number).normal(size=(count, 3)).astype("float32")


def train(strategy, model, number, each):
    """One step in which every replica takes `each` examples, and the gradient is their common mean."""
    together = each * strategy.num_replicas_in_sync
    data = examples(number, together)

    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        mine = tf.slice(data, [replica * each, 0], [each, 3])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(mine) - 1.0)) / together
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    runner(strategy)(step)


def save_yesterday(folder, save_format):
    """Trains on one device and saves; returns the weights after one more step, had nothing come between."""
    alone, model = tf.distribute.get_strategy(), make_model()
    for number in range(STEPS):
        train(alone, model, number, BATCH)
    formats.save(model, folder, save_format)
    observe(saved=model.variables)
    train(alone, model, STEPS, BATCH)
    return model.get_weights()


def resume(folder, save_format):
    """A model with the saved weights. Plain SGD remembers nothing, so a new one can go on."""
    loaded, model = formats.load(folder, save_format, make_model), make_model()
    model.set_weights([np.asarray(tf.convert_to_tensor(each)) for each in loaded.variables])
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
    checks.assert_same_global_batch(strategy, each, BATCH)
    train(strategy, model, STEPS, each)
    return Proof("the next step is the one of an uninterrupted run", model.get_weights(), want)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The number of replicas is in no file. A saved variable is one array, whether one device held it or four copies of it did, and
# loading hands that array to as many copies as the scope asks for. So nothing crashes.
#
# The number of replicas is in your *script*, wherever it batches for each replica. With four replicas one step takes in four
# times as many examples. It is a step of another training, with less noise, fewer steps per epoch and a learning rate that was
# chosen for something else.
#
# The picture saves and loads in every format under every combination, in the scope and outside it. The table below it has the
# same rows: what a format forgets, it forgets on one device too. See
# [Save and load a model using a distribution strategy](https://www.tensorflow.org/tutorials/distribute/save_and_load).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)
PLACES = {"default": two.but(strategy="default", devices=1)}
PLACES |= {f"mirrored x{count}": two.but(devices=count) for count in (2, 4)}
LOADS = [("default", True)]
LOADS += [(f"mirrored x{count}", inside) for count in (2, 4) for inside in (True, False)]


def with_memory():
    """A model whose optimizer has something to remember."""
    return model_with(tf.keras.optimizers.SGD(0.1, momentum=0.9))


def step_of_batch(strategy, model, number):
    train(strategy, model, number, BATCH // strategy.num_replicas_in_sync)


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


def devices_word(count):
    return "1 device" if count == 1 else f"{count} devices"


MATRIX = {
    (save_format, name): save_and_load(name, LOADS, save_format)
    for save_format in formats.TABLE
    for name in PLACES
}
WORDS = {
    f"{save_format}, from {name}": [devices_word(cell[0]) for cell in row.values()]
    for (save_format, name), row in MATRIX.items()
}
COLUMNS = ["default"]
COLUMNS += [f"{name}\n{'in scope' if inside else 'outside'}" for name, inside in LOADS[1:]]
figures.words(WORDS, COLUMNS, "1 device", "Saved from there, loaded under these, it lives on")

# %%
from helpers import text_table


def always(values):
    """One word for a whole row of the matrix, if there is one."""
    words = [{True: "yes", False: "no"}.get(value, value) for value in values]
    return words[0] if len(set(words)) == 1 else ", ".join(words)


HEAD = ["format", "saved under", "same predictions", "same optimizer", "next step"]
SUMMARY = [
    [*where, *(always([cell[part] for cell in row.values()]) for part in (1, 2, 3))]
    for where, row in MATRIX.items()
]
print(f"Each line: loaded in {len(LOADS)} ways")
print(text_table([HEAD] + SUMMARY))

# %% [markdown]
# ## The fix
#
# Decide how many examples one step takes in, keep that number with the run, and divide it by the replicas you happen to have.
# To grow the batch on purpose is fine; then it is a new training, with a learning rate of its own.
# `checks.assert_same_global_batch(strategy, each, batch)` tells an intention from an accident.


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
    train(strategy, model, STEPS, each)
    return Proof("the next step is the one of an uninterrupted run", model.get_weights(), want)


clinic.proves(fixed)

# %%
four = clinic.setup.but(strategy="mirrored", devices=4)
SETUPS = [four.but(devices=1), four, four.but(save_format="h5")]
SETUPS += [four.but(strategy="central_storage"), four.but(strategy="multi_worker", devices=2)]
SETUPS += [four.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# One device, and the failure is gone: that is where yesterday's run was. Two workers have it like two devices. A parameter server
# does not: its workers do not step together, so one step is still one replica's.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004 warns of errors and crashes as soon as the numbers of devices differ, and asks for the same strategy on both sides
# of a checkpoint. In none of the combinations above does loading fail, and a checkpoint goes from two replicas to four, or
# to none, without losing a digit.

# %% tags=["claims"]
SCOPED = [way for way in LOADS if way[0] != "default" and way[1]]
COUNTS = {"default": 1, "mirrored x2": 2, "mirrored x4": 4}
OTHER = [
    (name, way, cell)
    for (_, name), row in MATRIX.items()
    for way, cell in row.items()
    if COUNTS[name] != COUNTS[way[0]]
]
CHECKPOINT = [
    cell
    for (save_format, _), row in MATRIX.items()
    for cell in row.values()
    if save_format == "checkpoint"
]
clinic.judges(
    {
        # Loading would have raised, or the model would predict something else.
        "004-C3": [not MATRIX[each, "default"][way][1] for each in formats.TABLE for way in SCOPED],
        "004-C4": [not cell[1] for _, _, cell in OTHER],
        "004-C13": [cell[1:] != [True, True, "equal"] for cell in CHECKPOINT],
    },
)

# %% [markdown]
# ## Exercise
#
# The file also holds a step counter. This script has trained for one epoch on one device, and works out from the counter which
# epoch comes next. On one device it says 1, here it says something else. Mend the line that is wrong.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, all_examples = build_strategy(setup), 64
    with tempfile.TemporaryDirectory() as folder:
        model = make_model()
        model.optimizer.iterations.assign(all_examples // BATCH)
        formats.save(model, folder, "checkpoint")
        with strategy.scope():
            model = formats.load(folder, "checkpoint", make_model)
    steps_per_epoch = all_examples // (BATCH * strategy.num_replicas_in_sync)
    epoch = figures.values_of(model.optimizer.iterations)[0] // steps_per_epoch
    return Proof("the resumed script goes on with the second epoch, number 1", [epoch], [1])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, all_examples = build_strategy(setup), 64
    with tempfile.TemporaryDirectory() as folder:
        model = make_model()
        model.optimizer.iterations.assign(all_examples // BATCH)
        formats.save(model, folder, "checkpoint")
        with strategy.scope():
            model = formats.load(folder, "checkpoint", make_model)
    steps_per_epoch = all_examples // BATCH
    epoch = figures.values_of(model.optimizer.iterations)[0] // steps_per_epoch
    return Proof("the resumed script goes on with the second epoch, number 1", [epoch], [1])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the column of ones in the picture, where
#   a model loads and stays on one device.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a value that the file has never held,
#   on any number of devices.
