# %% [markdown]
# # FM35. On Keras 3, restoring a model before it is built loses its first variable
#
# A checkpoint is restored into a new model. `restore` raises nothing, and its assert passes. After the first batch one kernel is
# random, and the predictions are wrong.
#
# ```text
# prediction of the restored model 2.05, of the saved one 2.48
# ```
#
# *Silent on Keras 3. Keras 2 restores every variable. No strategy changes it. The sentence in question is from the reference of
# `tf.distribute.TPUStrategy`.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm35",
    slug="restore_before_build",
    title="On Keras 3, restoring a model before it is built loses its first variable",
    sees="a restored model predicts nonsense, although `restore` and its assert raised nothing",
    fix="call the model on a batch before `restore`, and assert after it",
    document="001",
    switches=("keras",),
    symptoms=(
        Symptom("SilentFailure", r"the restored model predicts what the saved one did", keras=(3,)),
    ),
    claims=(
        Claim("003-C32", "restoring belongs in the strategy's scope if it makes variables", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm35", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# A subclassed model has no variables before its first batch. TensorFlow defers the restore: each value waits until its variable
# is created. You rely on that, so you restore first and send the batch afterwards. You also call
# `assert_existing_objects_matched()`, and it passes.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

BATCH = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


class Network(tf.keras.Model):
    """Its variables are created by the first batch, which tells how wide the data is."""

    def __init__(self):
        super().__init__()
        self.first = tf.keras.layers.Dense(4, activation="tanh")
        self.second = tf.keras.layers.Dense(2)

    def call(self, inputs):
        return self.second(self.first(inputs))


def predict(model):
    return np.asarray(model(tf.constant(BATCH)))


def save_network(folder):
    """Saves a model whose weights are not those of a new one. Returns the path and what it predicts."""
    model = Network()
    predict(model)
    model.set_weights([weight + 0.5 for weight in model.get_weights()])
    return tf.train.Checkpoint(model=model).save(f"{folder}/training"), predict(model)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        path, before = save_network(folder)
        model = Network()
        checkpoint = tf.train.Checkpoint(model=model)
        status = checkpoint.restore(path)  # guilty: the layers have no variables yet
        status.assert_existing_objects_matched()
        after = predict(model)
    return Proof("the restored model predicts what the saved one did", [after], [before])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Keras 3 builds a model without a `build` method by a symbolic call of `call`. During that call a Keras variable has no
# `tf.Variable` behind it.
#
# The first layer creates its kernel, and the deferred restore tries to assign the saved value. The assignment raises. Keras
# catches the exception and goes on with the real batch. The layer then creates its kernel a second time. The checkpoint counts
# the kernel's value as used, so the second kernel keeps its random values. Every later variable is created once and is restored.
#
# The model now lists two kernels for its first layer. `fit` warns that a kernel has no gradient.
#
# The early assert checks only variables that exist, and there are none. A model with a `build` method, such as `Sequential`,
# needs no symbolic call. See [delayed restorations](https://www.tensorflow.org/guide/checkpoint#delayed_restorations) in the
# checkpoint guide.


# %%
class WithBuild(Network):
    """The same model with a `build` that builds its layers."""

    def build(self, input_shape):
        self.first.build(input_shape)
        self.second.build((*input_shape[:-1], 4))
        self.built = True


def arrived(make_model, call_first):
    """Which variables of a restored model have the saved values."""
    saved, model = make_model(), make_model()
    predict(saved)
    saved.set_weights([weight + 0.5 for weight in saved.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=saved).save(f"{folder}/training")
        if call_first:
            predict(model)
        tf.train.Checkpoint(model=model).restore(path)
        predict(model)
    pairs = zip(variables_of(saved), variables_of(model))
    return [np.array_equal(np.asarray(one), np.asarray(two)) for one, two in pairs]


def variables_of(model):
    return [model.first.kernel, model.first.bias, model.second.kernel, model.second.bias]


NAMES = ["first kernel", "first bias", "second kernel", "second bias"]
WAYS = {
    "restored first": arrived(Network, call_first=False),
    "has a build": arrived(WithBuild, call_first=False),
    "called first": arrived(Network, call_first=True),
}
ROWS = dict(zip(NAMES, zip(*WAYS.values())))
figures.grid(ROWS, list(WAYS), "restored", "lost", "Which saved values reach the model?")

# %% [markdown]
# ## The fix
#
# Call the model on one batch before `restore`. A batch of zeros of the right shape is enough. A `build` method that builds the
# layers works as well. Before:
#
# ```python
# import tensorflow as tf
#
# class Network(tf.keras.Model):
#     def call(self, inputs):
#         return self.dense(inputs)
#
# saved, model, batch = Network(), Network(), tf.ones((1, 3))
# saved.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
# model.dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
# saved(batch)
# tf.train.Checkpoint(model).restore(tf.train.Checkpoint(saved).save("saved"))
# print(saved(batch).numpy(), model(batch).numpy())  # [[3.]] [[0.]]
# ```
#
# After: both models are called before anything is saved or restored.
#
# ```python
# import tensorflow as tf
#
# class Network(tf.keras.Model):
#     def call(self, inputs):
#         return self.dense(inputs)
#
# saved, model, batch = Network(), Network(), tf.ones((1, 3))
# saved.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
# model.dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
# saved(batch), model(batch)
# tf.train.Checkpoint(model).restore(tf.train.Checkpoint(saved).save("saved"))
# print(saved(batch).numpy(), model(batch).numpy())  # [[3.]] [[3.]]
# ```
#
# Assert after the first batch, too. `checks.assert_restored(status)` raises there in the broken program.
# `print(pasted(checks.assert_restored))` prints it with all that it needs (`from strategy_clinic import pasted`).


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        path, before = save_network(folder)
        model = Network()
        checkpoint = tf.train.Checkpoint(model=model)
        predict(model)  # repair: the first batch creates the variables
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()
        after = predict(model)
    return Proof("the restored model predicts what the saved one did", [after], [before])


session.proves(fixed)

# %%
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [session.setup.but(strategy="default", devices=1), two]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose Keras 2: the failure is gone, since it restores in either order. Choose another strategy: nothing changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` says where a restore belongs:
#
# > Checkpoint saving. As mentioned above - checkpoint.restore may sometimes need to be inside scope if it creates variables.
#
# The run agrees. `restore` creates one variable, the counter of saves, and the strategy that is current at `restore` owns it. The
# variables of an unbuilt model belong to the strategy that is current at the first batch. So the first batch belongs in the
# scope, and on Keras 3 it belongs before the `restore`.
#
# "Why am I getting a Checkpointing error with apply_gradients()?" prints "checkpoint loaded successfully" right after `restore`.
# That line shows only that nothing was raised.


# %% tags=["claims"]
def created(restore_inside, build_inside):
    """Which variables are the strategy's: the counter that restoring makes, and those that the first batch makes."""
    distributed = build_strategy(session.setup.but(strategy="mirrored", devices=2))
    alone = build_strategy(session.setup.but(strategy="default", devices=1))
    with tempfile.TemporaryDirectory() as folder:
        path, _ = save_network(folder)
        model = Network()
        checkpoint = tf.train.Checkpoint(model=model)
        with (distributed if restore_inside else alone).scope():
            checkpoint.restore(path)
        with (distributed if build_inside else alone).scope():
            predict(model)
    known = distributed.extended.variable_created_in_scope
    weights = [checks.variable_of(weight) for weight in model.weights]
    return known(checkpoint.save_counter), all(known(weight) for weight in weights)


session.judges(
    {
        "003-C32": [
            created(restore_inside=True, build_inside=False) == (True, False),
            created(restore_inside=False, build_inside=True) == (False, True),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This job may be killed at any time. When it starts, `restore_or_initialize` restores the newest checkpoint, or returns `None` if
# there is no checkpoint yet. After each restart the embedding is a new random one. Add one line.


# %%
class Scores(tf.keras.Model):
    """Words in, one score for each word out."""

    def __init__(self):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(5, 3)
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(self.embedding(inputs))


def manager_of(model, folder):
    checkpoint = tf.train.Checkpoint(model=model)
    return tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)


# %% tags=["exercise"]
@experiment
def attempt(setup):
    with tempfile.TemporaryDirectory() as folder, build_strategy(setup).scope():
        words, killed, model = tf.constant([[0, 1, 2]]), Scores(), Scores()
        before = np.asarray(killed(words))
        manager_of(killed, folder).save()
        manager_of(model, folder).restore_or_initialize()
        after = np.asarray(model(words))
    return Proof("the new model scores as the killed one did", [after], [before])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    with tempfile.TemporaryDirectory() as folder, build_strategy(setup).scope():
        words, killed, model = tf.constant([[0, 1, 2]]), Scores(), Scores()
        before = np.asarray(killed(words))
        manager_of(killed, folder).save()
        model(words)
        manager_of(model, folder).restore_or_initialize()
        after = np.asarray(model(words))
    return Proof("the new model scores as the killed one did", [after], [before])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): an optimizer that is restored before its slots exist.
# - [fm06 architecture_changed](fm06_architecture_changed.ipynb): other restores in which an assert passes and values are missing.
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a `restore` that reads no file at all.
