# %% [markdown]
# # FM08. Restoring the path that you gave to save finds no checkpoint
#
# The script saves to a path and restores that same path, and TensorFlow finds no file of that name. Other wrong paths raise
# nothing, and the training starts from scratch.
#
# ```text
# NotFoundError: Please double-check that the path is correct.
#   … You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').
# ```
#
# *Loud in the broken script, silent in the exercise. No switch makes it go away. From "Why am I getting a Checkpointing error
# with apply_gradients()?" (document 001).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm08",
    slug="checkpoint_path_wrong",
    title="Restoring the path that you gave to save finds no checkpoint",
    sees="`restore` finds no file where `save` has just written one, or it quietly restores nothing",
    fix="save and restore through a `tf.train.CheckpointManager`, and call `assert_consumed()` on what `restore` returns",
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
import strategy_clinic as clinic

session = clinic.open("fm08", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You save to `training`, so you believe that the checkpoint is called `training`. Most functions that write a file work like
# that. `save` raises nothing. The restore in the next run does.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

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
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step(data):
        strategy.run(step, args=(data,))

    for number in steps:
        train_step(tf.constant(batch(number)))


# %%
def start(strategy):
    """A model with fresh weights, and the checkpoint that would bring it back."""
    with strategy.scope():
        model = make_model()
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def state(model):
    """Weights, momenta, learning rate and the count of steps."""
    return [tf.identity(variable) for variable in [*model.variables, *model.optimizer.variables]]


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
        checkpoint.restore(path).assert_consumed()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The argument of `save` is a prefix. `save` appends the number of the call, so that a later call does not overwrite an earlier
# one. The first checkpoint is `training-1`: one file `training-1.index`, and one or more files `training-1.data-…`. `restore`
# takes that name. It does not take the prefix, the folder or the name of a file.
#
# Two wrong paths raise nothing. `latest_checkpoint` returns `None` for a folder without checkpoints, and `restore(None)`
# restores nothing, since a first run has nothing to restore. The name of the `.index` file is read as a checkpoint of TensorFlow
# 1, in which no variable matches.
#
# The picture restores one variable from each path. See
# [`Checkpoint.save`](https://www.tensorflow.org/api_docs/python/tf/train/Checkpoint#save).


# %%
def tries(path):
    """What `restore` does with the path, and whether the value arrives."""
    variable = tf.Variable(0.0)
    try:
        tf.train.Checkpoint(variable=variable).restore(path)
    except (tf.errors.NotFoundError, tf.errors.DataLossError):
        return ["raises", "missing"]
    return ["accepts", "restored" if float(variable) == 5.0 else "missing"]


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
figures.words(PATHS, ["restore", "value"], ["raises", "missing"])

# %% [markdown]
# ## The fix
#
# Let a `CheckpointManager` choose the names. Before:
#
# ```python
# import tempfile
# import tensorflow as tf
#
# weight, folder = tf.Variable(1.5), tempfile.mkdtemp()
# tf.train.Checkpoint(weight=weight).save(f"{folder}/training")
# weight = tf.Variable(0.0)  # a new process
# checkpoint = tf.train.Checkpoint(weight=weight)
# checkpoint.restore(f"{folder}/training")  # NotFoundError: You may be missing the checkpoint suffix
# ```
#
# After:
#
# ```python
# import os, tempfile
# import tensorflow as tf
#
# weight, folder = tf.Variable(1.5), tempfile.mkdtemp()
# checkpoint = tf.train.Checkpoint(weight=weight)
# tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3).save()
# weight = tf.Variable(0.0)  # a new process
# checkpoint = tf.train.Checkpoint(weight=weight)
# manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
# path = manager.restore_or_initialize()  # None in a first run
# print(os.path.basename(path), weight.numpy())  # ckpt-1 1.5
# ```
#
# `restore_or_initialize` asserts nothing. Log the path that it returns: `None` in a run that should resume means a wrong folder.
# To assert, restore `manager.latest_checkpoint` yourself, as below. `assert_existing_objects_matched` raises if a variable of
# the program got no value. `assert_consumed` also raises if a value of the file went nowhere, for example because a layer was
# removed or the optimizer is not built. Both raise after `restore(None)`, so leave them out of a first run.


# %%
def answers(status):
    told = {}
    for name in ("assert_existing_objects_matched", "assert_consumed"):
        try:
            getattr(status, name)()
            told[name] = "passes"
        except AssertionError:
            told[name] = "raises"
    return told


def variables(*names):
    return tf.train.Checkpoint(**{name: tf.Variable(1.0) for name in names})


with tempfile.TemporaryDirectory() as folder:
    saved = variables("first", "second").save(f"{folder}/training")
    print("the same variables  ", answers(variables("first", "second").restore(saved)))
    print("one variable added  ", answers(variables("first", "second", "third").restore(saved)))
    print("one variable removed", answers(variables("first").restore(saved)))
    print("restore(None)       ", answers(variables("first", "second").restore(None)))


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/training")
        model, checkpoint = start(strategy)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
        path = manager.latest_checkpoint  # repair: the name that save wrote
        if path is not None:  # a first run has nothing to restore
            checkpoint.restore(path).assert_consumed()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage"), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch strategy, devices and Keras generation. The failure stays: the path is wrong before any variable is read.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "Why am I getting a Checkpointing error with apply_gradients()?" restores `./my_checkpoint_2`, the name given to `save`, after
# a change of architecture, and `./my_checkpoint_3` after training with a loss of its own:
#
# > this can trigger an issue and if the number of layers change you might have an error.
#
# > if the my_loss_calculation is not using a `tf.*` operations and you are working with numpy arrays, this can also break the
# > graph and cause an error
#
# Both restores raise, because of the path. With the path that `save` returned neither raises, and with the prefix an unchanged
# model raises too.
#
# "Does `keras.models.load_model` function correctly with MirroredStrategy?" (document 004) writes with `ModelCheckpoint` and
# reads with `latest_checkpoint`:
#
# > `checkpoint.restore(tf.train.latest_checkpoint(checkpoint_dir)) #Restore a previous checkpoint if exists`
#
# `latest_checkpoint` finds TensorFlow's checkpoints only, and Keras 3 writes `.weights.h5`.


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


written = "callback" if session.setup.keras == 2 else "callback.weights.h5"
session.judges(
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
# This script means to resume. Nothing is raised, and it starts from scratch. Find out which path it restores, correct it, and
# make the next wrong path raise.


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


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, f"{folder}/run-1/training")
        model, checkpoint = start(strategy)
        path = tf.train.latest_checkpoint(f"{folder}/run-1")
        checkpoint.restore(path).assert_consumed()
    train(strategy, model, range(SAVED, STEPS))
    return Proof("resumed training ends where it would have without", state(model), uninterrupted)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): the path is right, and a value is not in the file.
# - [fm06 architecture_changed](fm06_architecture_changed.ipynb): the path is right, and the model is another one.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): all values arrive, on one device only.
