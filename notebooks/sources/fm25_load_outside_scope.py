# %% [markdown]
# # FM25. Loading a model outside the scope leaves it on one device
#
# You train on several devices, load the model the next day, and everything works: right predictions, no warning, and all
# devices but one idle.
#
# *Silent. Strategy, device count and save format all matter. From document 004.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm25",
    slug="load_outside_scope",
    title="Loading a model outside the scope leaves it on one device",
    sees="a loaded model works, but all devices except one stay idle",
    fix="put the line that loads the model inside `with strategy.scope():`",
    document="004",
    switches=("strategy", "devices", "save_format"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"\d+ of \d+ variables live outside the scope of \w+",
            strategies=(
                "mirrored",
                "central_storage",
                "parameter_server",
                "multi_worker",
                "tpu_traced",
                "tpu",
            ),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim("004-C1", "the strategy is not saved with the model", "true"),
        Claim("004-C2", "loading outside the scope gives a model on one device", "true"),
        Claim("004-C5", "loading builds the model in the strategy that is current", "true"),
        Claim(
            "003-C28",
            "a model remembers its scope: fit, evaluate, predict and save work outside it",
            "true",
        ),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm25", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that a model trained on two devices is a two-device model, and that its file knows. So the script that
# trains has a `strategy.scope()` and the script that loads has none. It runs. It even predicts what it predicted before.

# %%
import tempfile
import zipfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats, observe

BATCH = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


def make_model():
    layers = [
        tf.keras.Input((3,)),
        tf.keras.layers.Dense(4, activation="tanh"),
        tf.keras.layers.Dense(1),
    ]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def predict(model):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant(BATCH)))


def save_yesterday(strategy, folder, save_format):
    with strategy.scope():
        model = make_model()
    formats.save(model, folder, save_format)
    observe(saved=model.variables)
    return predict(model)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(strategy, folder, setup.save_format)
        model = formats.load(folder, setup.save_format, make_model)  # guilty: no scope around it
        after = predict(model)
    observe(loaded=model.variables)
    checks.assert_distributed(strategy, model.variables)
    return Proof("the loaded model predicts as it did before it was saved", [after], [before])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A file holds numbers, and in some formats the recipe for the layers. It holds no strategy. Whatever loads it *creates
# variables*, and a variable is distributed only if the strategy's scope is open at the moment of its creation: that is when
# `MirroredStrategy` makes one copy per device. Without the scope TensorFlow makes one ordinary variable, which is a
# perfectly good model, so there is nothing to complain about.
#
# The picture shows the devices that hold a copy of each variable, before saving and after loading. See
# [`MirroredStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy) on variables in its scope.

# %%
figures.where_variables_live(broken, clinic.setup)

# %% [markdown]
# ## The fix
#
# Open the scope around the line that loads. Nothing else changes; the file may come from any number of devices. The check
# `checks.assert_distributed(strategy, model.variables)` can go into your own script: it raises where TensorFlow is silent.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(strategy, folder, setup.save_format)
        with strategy.scope():  # repair
            model = formats.load(folder, setup.save_format, make_model)
        after = predict(model)
    observe(loaded=model.variables)
    checks.assert_distributed(strategy, model.variables)
    return Proof(
        "every variable is the strategy's, and the model predicts as it did before it was saved",
        [after],
        [before],
    )


clinic.proves(fixed)

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [two.but(save_format=each) for each in formats.TABLE]
SETUPS += [two.but(devices=each) for each in (1, 4)]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device, or the strategy `default`, and the failure is gone: one device is all there is. Change the save format, and
# it stays: no format keeps the strategy.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004 is right about this one, and its last sentence deserves more attention than it gets: the scope that counts is
# the one around the load. Document 003 adds that the model then remembers it.


# %% tags=["claims"]
def saved_and_loaded(saving, loading):
    """A model saved under one strategy, loaded in the scope of another; same predictions?; its file."""
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(build_strategy(saving), folder, "keras")
        with zipfile.ZipFile(f"{folder}/model.keras") as file:
            recipe = file.read("config.json").decode()
        with build_strategy(loading).scope():
            model = formats.load(folder, "keras", make_model)
    return model, np.allclose(before, predict(model), atol=1e-6), recipe


def copies(model):
    return len(figures.copies(model.variables[0]))


def works_outside_scope(model):
    """fit, evaluate, predict and save without a scope; the weights stay on both devices."""
    data, labels = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    before = model.get_weights()[0].copy()
    model.fit(data, labels, batch_size=8, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, "keras")
    trained = not np.array_equal(before, model.get_weights()[0])
    evaluated = np.isfinite(model.evaluate(data, labels, verbose=0))
    return [trained, evaluated, model.predict(data, verbose=0).shape == (8, 1), copies(model) == 2]


alone, same, recipe = saved_and_loaded(two, two.but(strategy="default", devices=1))
four, _, _ = saved_and_loaded(two, two.but(devices=4))
again, _, _ = saved_and_loaded(two, two)
clinic.judges(
    {
        "004-C1": ["Dense" in recipe, "Mirrored" not in recipe, copies(alone) == 1],
        "004-C2": [copies(alone) == 1, same],
        "004-C5": [copies(alone) == 1, copies(four) == 4],
        "003-C28": works_outside_scope(again),
    },
)

# %% [markdown]
# ## Exercise
#
# This script does open a scope, for a new optimizer, but the model still lives on one device. Move one line until the
# exercise is green.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(strategy, folder, setup.save_format)
        with strategy.scope():
            optimizer = tf.keras.optimizers.Adam()
        model = formats.load(folder, setup.save_format, make_model)
        after = predict(model)
    checks.assert_distributed(strategy, model.variables)
    return Proof(
        "every variable is the strategy's, and the model predicts as before", [after], [before]
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(strategy, folder, setup.save_format)
        with strategy.scope():
            optimizer = tf.keras.optimizers.Adam()
            model = formats.load(folder, setup.save_format, make_model)
        after = predict(model)
    checks.assert_distributed(strategy, model.variables)
    return Proof(
        "every variable is the strategy's, and the model predicts as before", [after], [before]
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the whole matrix of saving here and loading there.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): the scope is open, and no replica is running.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): the other thing that a load may leave behind.
