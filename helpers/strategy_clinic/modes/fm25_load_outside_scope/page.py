# %% [markdown]
# # FM25. Loading a model outside the scope leaves it on one device
#
# You train on several devices, load the model the next day, and go on with `fit`. The predictions are right and nothing warns.
# All devices but one are idle.
#
# ```text
# devices that fit uses: 1, devices of the strategy: 2
# ```
#
# *Silent. Strategy and device count matter; every save format shows it. From document 004, "Does `keras.models.load_model`
# function correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
            r"not so: fit trains the loaded model on every device",
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
import strategy_clinic as clinic

session = clinic.open("fm25", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that a model trained on two devices is a two-device model, and that its file knows. So the script that trains opens
# `strategy.scope()`, and the script that loads does not. It runs. It predicts what it predicted before, and `fit` goes on.

# %%
import tempfile
import zipfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures, formats, observe

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


def train(model):
    """One step of `fit`. A SavedModel is a graph and has no `fit`."""
    if hasattr(model, "fit"):
        model.compile(optimizer="sgd", loss="mse")
        model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=8, verbose=0)


def devices_of_fit(strategy, devices, model):
    """All of the strategy's devices if it has created every variable of the model, otherwise one."""
    created = strategy.extended.variable_created_in_scope
    inside = all(created(checks.variable_of(weight)) for weight in model.variables)
    return devices if inside else 1


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        save_yesterday(strategy, folder, setup.save_format)
        model = formats.load(folder, setup.save_format, make_model)  # guilty: no scope around it
    observe(loaded=model.variables)
    train(model)
    used = devices_of_fit(strategy, setup.devices, model)
    return Proof("fit trains the loaded model on every device", [used], [setup.devices])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A file holds numbers, and in some formats the architecture. It holds no strategy. Whatever loads the file *creates variables*. A
# variable is distributed only if the scope of the strategy is open when it is created: `MirroredStrategy` then makes one copy for
# each device. Outside the scope TensorFlow makes one ordinary variable, which is a valid model, so nothing warns. `fit` uses the
# strategy that created the model.
#
# On GPUs, look at the utilisation that `nvidia-smi` shows, and not at the memory. [By
# default](https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth) TensorFlow takes the memory of every visible GPU, also
# of those that then idle.
#
# The picture shows the devices that hold a copy of each variable, before saving and after loading. See
# [`MirroredStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy).

# %%
figures.where_variables_live(broken, session.setup)

# %% [markdown]
# ## The fix
#
# Open the scope around the line that loads. The file may come from any number of devices. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()  # two devices
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
#     model.compile("sgd", "mse")
# model.save("model.keras")
# loaded = tf.keras.models.load_model("model.keras")
# loaded.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)
# print("devices:", loaded.distribute_strategy.num_replicas_in_sync)  # devices: 1
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()  # two devices
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
#     model.compile("sgd", "mse")
# model.save("model.keras")
# with strategy.scope():
#     loaded = tf.keras.models.load_model("model.keras")
# loaded.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)
# print("devices:", loaded.distribute_strategy.num_replicas_in_sync)  # devices: 2
# ```
#
# `checks.assert_distributed(strategy, model.variables)` raises where TensorFlow is silent: call it right after the load.
# `print(pasted(checks.assert_distributed))` prints it with all that it needs, after `from strategy_clinic import pasted`.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(strategy, folder, setup.save_format)
        with strategy.scope():  # repair
            model = formats.load(folder, setup.save_format, make_model)
    observe(loaded=model.variables)
    checks.assert_distributed(strategy, model.variables)
    used = devices_of_fit(strategy, setup.devices, model)
    return Proof(
        "fit trains the loaded model on every device, from what was saved",
        [used, predict(model)],
        [setup.devices, before],
    )


session.proves(fixed)

# %%
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [two.but(devices=1), two, two.but(save_format="checkpoint")]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device, or the strategy `default`, and the failure is gone. Change the save format, and it stays: no format keeps the
# strategy.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", says of a saved model:
#
# > It does *not* inherently save the distribution strategy itself. … Upon loading, `keras.models.load_model` reconstructs the
# > model's architecture from the saved configuration, but it instantiates this architecture within the *current* execution
# > environment's strategy
#
# That is right: the scope that counts is the one around the load. Document 003, TensorFlow's page on `TPUStrategy`, adds for a
# model that was created in the scope, and the run agrees:
#
# > model.compile, model.fit, model.evaluate, model.predict and model.save can all be called inside or outside the scope.


# %% tags=["claims"]
def saved_and_loaded(saving, loading):
    """A model saved under one strategy, loaded in the scope of another; same predictions?; its file."""
    with tempfile.TemporaryDirectory() as folder:
        before = save_yesterday(build_strategy(saving), folder, "keras")
        with zipfile.ZipFile(f"{folder}/model.keras") as file:
            architecture = file.read("config.json").decode()
        with build_strategy(loading).scope():
            model = formats.load(folder, "keras", make_model)
    return model, np.allclose(before, predict(model), atol=1e-6), architecture


def copies(model):
    return len(figures.copies(model.variables[0]))


def works_outside_scope(model):
    """compile, fit, evaluate, predict and save without a scope; the weights stay on both devices."""
    data, labels = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    before = model.get_weights()[0].copy()
    model.compile(optimizer="sgd", loss="mse")
    model.fit(data, labels, batch_size=8, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, "keras")
    trained = not np.array_equal(before, model.get_weights()[0])
    evaluated = np.isfinite(model.evaluate(data, labels, verbose=0))
    return [trained, evaluated, model.predict(data, verbose=0).shape == (8, 1), copies(model) == 2]


one = two.but(strategy="default", devices=1)
alone, same, architecture = saved_and_loaded(two, one)
both, _, _ = saved_and_loaded(one, two)
session.judges(
    {
        "004-C1": ["Dense" in architecture, "Mirrored" not in architecture, copies(alone) == 1],
        "004-C2": [copies(alone) == 1, same],
        "004-C5": [copies(alone) == 1, copies(both) == 2],
        "003-C28": works_outside_scope(both),
    },
)

# %% [markdown]
# ## Exercise
#
# This script opens a scope, for a new optimizer. The model still lives on one device. Move one line until the exercise is green.


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


session.exercise(attempt)


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


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): saving here and loading there, in every format.
# - [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb): one variable outside the scope, written to by replicas.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): the scope is open, and no replica is running.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a value that a load leaves behind.
