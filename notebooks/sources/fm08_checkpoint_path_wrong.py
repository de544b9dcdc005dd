# %% [markdown]
# # FM08. Restoring the path that you gave to save finds no checkpoint
#
# The script saves to a path and restores that same path, and TensorFlow says that no file matches it. Give it another wrong path
# and it may say nothing at all, and train from scratch.
#
# ```text
# NotFoundError: Please double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').
# ```
#
# *Loud in the broken script, silent in the exercise. No switch makes it go away. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm08",
    slug="checkpoint_path_wrong",
    title="Restoring the path that you gave to save finds no checkpoint",
    sees="`restore` finds no file where `save` has just written one, or it quietly restores nothing",
    fix="restore what `save` returned, or `tf.train.latest_checkpoint(folder)`, and assert the result",
    document="001",
    switches=(),
    symptoms=(Symptom("NotFoundError", r"You may be missing the checkpoint suffix"),),
    claims=(
        Claim("001-C6", "its second example fails because the architecture changed", "false"),
        Claim("001-C10", "its third example fails because of the loss function", "false"),
        Claim(
            "004-C14",
            "`tf.train.latest_checkpoint` finds what `ModelCheckpoint` has written",
            {2: "true", 3: "false"},
        ),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm08", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You save to `training`, so the checkpoint is called `training`. Every other function that writes a file works like that, and
# `save` does not complain.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures

SAVED, STEPS = 3, 5


def make_model(units=1):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(units)])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def batch(step):
    return np.random.default_rng(step).normal(size=(8, 3)).astype("float32")


def train(strategy, model, steps):
    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for number in steps:
        strategy.run(step, args=(tf.constant(batch(number)),))


# %%
def start(strategy):
    """A model with fresh weights, and the checkpoint that would bring it back."""
    with strategy.scope():
        model = make_model()
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def state(model):
    """Weights, momenta, learning rate and the count of steps."""
    kept = [*model.variables, *model.optimizer.variables]
    return [tf.convert_to_tensor(checks.variable_of(variable)) for variable in kept]


def train_and_save(strategy, prefix):
    """Saves after some steps and goes on without a restart: what a restart must arrive at."""
    model, checkpoint = start(strategy)
    train(strategy, model, range(SAVED))
    checkpoint.save(prefix)
    train(strategy, model, range(SAVED, STEPS))
    return state(model)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/training")
        model, checkpoint = start(strategy)
        path = f"{folder}/training"  # guilty: the name given to save, not the one that it wrote
        checkpoint.restore(path).assert_existing_objects_matched()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# What you give to `save` is a prefix. `save` counts its calls and adds the number, so that the next call overwrites nothing: the
# first checkpoint is `training-1`, a name under which two files lie, one `.index` and one or more `.data-…` shards. `restore`
# wants just that name: neither the prefix, nor the folder, nor one of the files.
#
# Worse are the paths that raise nothing. `latest_checkpoint` answers `None` for a folder without checkpoints, and `restore(None)`
# is a promise to restore nothing, made for first runs. The name of the `.index` file is taken for a checkpoint of TensorFlow 1,
# in which no variable is found. In both cases only an assert on what `restore` returns will tell.
#
# The picture tries each path on a variable. See [`Checkpoint.save`](https://www.tensorflow.org/api_docs/python/tf/train/Checkpoint#save).


# %%
def tries(path):
    """Does `restore` accept the path, does the value arrive, and is an assert content?"""
    variable = tf.Variable(0.0)
    try:
        status = tf.train.Checkpoint(variable=variable).restore(path)
    except (tf.errors.NotFoundError, tf.errors.DataLossError):
        return [False, False, False]
    return [True, float(variable) == 5.0, is_content(status)]


def is_content(status):
    try:
        status.assert_existing_objects_matched()
    except AssertionError:
        return False
    return True


with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
    saved = tf.train.Checkpoint(variable=tf.Variable(5.0)).save(f"{folder}/training")
    PATHS = {
        "what save returned": tries(saved),
        "latest_checkpoint(folder)": tries(tf.train.latest_checkpoint(folder)),
        "the prefix": tries(f"{folder}/training"),
        "the folder": tries(folder),
        "the .index file": tries(f"{saved}.index"),
        "latest_checkpoint(empty folder)": tries(tf.train.latest_checkpoint(empty)),
    }
figures.grid(PATHS, ["accepted", "value arrives", "assert passes"], "yes", "no")

# %% [markdown]
# ## The fix
#
# In the process that saved, keep what `save` returns. In a new one, ask `tf.train.latest_checkpoint` for the newest checkpoint
# of the folder. Chain `.assert_existing_objects_matched()` to every `restore`: it is one line, and it is loud about `None`.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/training")
        model, checkpoint = start(strategy)
        path = tf.train.latest_checkpoint(folder)  # repair
        checkpoint.restore(path).assert_existing_objects_matched()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (one, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Neither a strategy nor another Keras changes anything: the path is wrong before any variable is looked at.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 has one example in which the architecture changes and one in which the loss is to blame, and says that `restore`
# may break in both. It does, for neither reason: with the path that `save` returned nothing is raised. Document 004 counts on
# `latest_checkpoint` to find what a Keras callback has written. It knows only TensorFlow's checkpoints, and Keras 3 writes
# `.weights.h5`.


# %% tags=["claims"]
def my_loss_calculation(values):
    return tf.reduce_mean(tf.square(values))


def raises(second, trained, right_path):
    """Trains and saves a model, gives its name to a second one and restores, as the document's examples do."""
    model = make_model()
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    if trained:
        with tf.GradientTape() as tape:
            loss = my_loss_calculation(model(batch(0)))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    with tempfile.TemporaryDirectory() as folder:
        saved = checkpoint.save(f"{folder}/my_checkpoint")
        model = second
        try:
            checkpoint.restore(saved if right_path else f"{folder}/my_checkpoint")
        except tf.errors.NotFoundError:
            return True
    return False


def found_by_latest_checkpoint(name):
    """Whether the callback accepts this name, and whether its file is found then."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            callback = tf.keras.callbacks.ModelCheckpoint(
                f"{folder}/{name}", save_weights_only=True
            )
        except ValueError:
            return False
        callback.set_model(make_model())
        callback.on_epoch_end(0, {})
        return tf.train.latest_checkpoint(folder) is not None


written = "callback" if clinic.setup.keras == 2 else "callback.weights.h5"
clinic.judges(
    {
        # The supposed cause with the right path, and the wrong path without the supposed cause.
        "001-C6": [raises(make_model(4), True, True), not raises(make_model(), True, False)],
        "001-C10": [raises(make_model(), True, True), not raises(make_model(), False, False)],
        "004-C14": [found_by_latest_checkpoint(each) for each in ("callback", written)],
    },
)

# %% [markdown]
# ## Exercise
#
# This script means to resume and raises nothing, yet it starts from scratch. Find out which path it restores, mend it, and make
# sure that the next wrong path will not go unnoticed.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/run-1/training")
        model, checkpoint = start(strategy)
        checkpoint.restore(tf.train.latest_checkpoint(folder))
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/run-1/training")
        model, checkpoint = start(strategy)
        path = tf.train.latest_checkpoint(f"{folder}/run-1")
        checkpoint.restore(path).assert_existing_objects_matched()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): the path is right, and a value is still not in the file.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): all values arrive, on one device.
