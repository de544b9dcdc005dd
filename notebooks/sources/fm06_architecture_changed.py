# %% [markdown]
# # FM06. Weights do not fit a model whose architecture has changed
#
# A checkpoint from last week meets today's code. If a layer has changed its width, TensorFlow compares shapes and refuses. If a
# layer has been added, dropped or given another activation, it may refuse nothing.
#
# ```text
# Keras 3  ValueError: Received incompatible tensor with shape (1, 4) when attempting to restore variable with shape (1, 8) and name sequential_37/hidden/kernel:0.
# Keras 2  ValueError: Received incompatible tensor with shape (4,) when attempting to restore variable with shape (8,) and name hidden/bias:0.
# ```
#
# *Loud for a changed shape, silent for most other changes. Save format, strategy and Keras generation matter. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm06",
    slug="architecture_changed",
    title="Weights do not fit a model whose architecture has changed",
    sees="loading weights raises a shape error, or fills only a part of the model and says nothing",
    fix="keep the settings that built the model beside its weights, and build from them",
    document="001",
    switches=("save_format", "strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"The shape of the target variable and the shape of the target value .* must match",
            strategies=("mirrored", "multi_worker", "tpu_traced", "tpu"),
            formats=("checkpoint",),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"Cannot assign value to variable .*Shape mismatch",
            strategies=("mirrored", "multi_worker", "tpu_traced", "tpu"),
            formats=("checkpoint",),
            keras=(2,),
        ),
        Symptom("ValueError", r"Received incompatible tensor with shape", formats=("checkpoint",)),
        Symptom(
            "ValueError",
            r"objects could not be loaded|^\[<\w+ name=\w+, built=True>",
            formats=("weights_h5",),
            keras=(3,),
        ),
        # A TPU's variable takes a value of any shape, so the first call is the first to notice.
        Symptom(
            "ValueError",
            r"is incompatible with the layer: expected axis -1",
            strategies=("tpu_traced", "tpu"),
            formats=("weights_h5",),
            keras=(2,),
        ),
        Symptom(
            "ValueError",
            r"Cannot assign value to variable .*Shape mismatch",
            formats=("weights_h5",),
            keras=(2,),
        ),
    ),
    claims=(
        Claim("001-C5", "a changed architecture cannot be restored", "true"),
        Claim("001-C7", "a new model of the same name is what a checkpoint restores", "false"),
        Claim("001-C12", "TensorFlow checkpoints need a static graph", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm06", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The hidden layer had four units when the weights were saved. Since then somebody has raised the default to eight. You believe
# that the file knows how the model looked, and some files do; this one holds numbers under names.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, formats

BATCH = [[0.1], [0.4]]


def make_model(units, activation="tanh", extra=0):
    layers = [
        tf.keras.Input((1,)),
        tf.keras.layers.Dense(
            units, activation=activation, kernel_initializer="ones", name="hidden"
        ),
        tf.keras.layers.Dense(1, name="output"),
        *[tf.keras.layers.Dense(1, name=f"extra_{number}") for number in range(extra)],
    ]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def predict(model):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant(BATCH)))


# %%
def save_last_week(strategy, folder, save_format):
    """Saves a model of four units, and what it was built with."""
    settings = {"units": 4}
    with strategy.scope():
        model = make_model(**settings)
    formats.save(model, folder, save_format)
    Path(folder, "settings.json").write_text(json.dumps(settings))
    return predict(model)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_last_week(strategy, folder, setup.save_format)
        settings = {"units": 8}  # guilty: today's default, not what the weights were made for
        with strategy.scope():
            model = formats.load(folder, setup.save_format, lambda: make_model(**settings))
        after = predict(model)
    return Proof("the loaded model predicts as it did last week", [after], [before])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A checkpoint and a weights file are addressed by structure: the kernel of the second layer, not the weight that learned this
# or that. Loading walks through the model that you have now, asks for the value at each address, and compares shapes. A shape
# is all that it can compare.
#
# So another width is refused. A layer more finds nothing at its address and keeps its random start, and `restore` reports that
# only if you assert. An activation has no weights, so nothing at all can notice it. And a checkpoint holds on to *objects*:
# give the variable `model` to a new model, and the checkpoint still restores the old one, which nobody uses any more.
#
# The picture restores a checkpoint into changed models. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).


# %%
def restores(change, rebind=False):
    """Is a checkpoint of four units accepted by another model; do asserts pass, weights arrive, predictions return?"""
    first, second = make_model(units=4), make_model(**{"units": 4} | change)
    checkpoint = tf.train.Checkpoint(model=first)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/training")
        checkpoint = checkpoint if rebind else tf.train.Checkpoint(model=second)
        try:
            status = checkpoint.restore(path)
        except ValueError:
            return [False, False, False, False]
        consumed = is_consumed(status)
    pairs = zip(first.get_weights(), second.get_weights())
    arrive = len(first.weights) == len(second.weights) and all(np.array_equal(*p) for p in pairs)
    return [True, consumed, arrive, np.allclose(predict(first), predict(second))]


def is_consumed(status):
    try:
        status.assert_consumed()
    except AssertionError:
        return False
    return True


CHANGES = {
    "the same layers": restores({}),
    "another width": restores({"units": 8}),
    "one layer more": restores({"extra": 1}),
    "another activation": restores({"activation": "relu"}),
    "a new model, the old checkpoint": restores({}, rebind=True),
}
COLUMNS = ["accepted", "assert passes", "weights arrive", "same output"]
figures.grid(CHANGES, COLUMNS, "yes", "no")

# %% [markdown]
# ## The fix
#
# Write what builds the model beside its weights, and build from that; or save in a format that holds the architecture, such as
# `keras`. After a restore, compare one prediction with one from before: that is the only test that every row of the picture
# fails or passes as it should.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        before = save_last_week(strategy, folder, setup.save_format)
        settings = json.loads(Path(folder, "settings.json").read_text())  # repair
        with strategy.scope():
            model = formats.load(folder, setup.save_format, lambda: make_model(**settings))
        after = predict(model)
    return Proof("the loaded model predicts as it did last week", [after], [before])


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
FILES = ("checkpoint", "weights_h5", "keras")
SETUPS = [one.but(save_format=each) for each in FILES]
SETUPS += [one.but(strategy="mirrored", devices=2, save_format="checkpoint")]
SETUPS += [one.but(save_format=each, keras=clinic.setup.other_keras) for each in FILES[:2]]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `keras`, `h5`, `saved_model` or `npz` and the failure is gone: those files bring the architecture along, and your new
# default is not even asked. Choose `weights_h5`, and each Keras generation has its own words for the same refusal.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 is right that a changed architecture and an old checkpoint do not go together. Its example cannot show it: it
# gives the name `model` to a new model and restores the old one. Nor do checkpoints want a static graph: they follow objects,
# and a model whose layers are chosen by a Python `if` in each call is saved and restored like any other.


# %% tags=["claims"]
class Undecided(tf.keras.Model):
    """Goes one way or another from call to call, decided in Python; there is no graph at all."""

    def __init__(self):
        super().__init__()
        self.left = tf.keras.layers.Dense(1)
        self.right = tf.keras.layers.Dense(1)

    def build(self, input_shape):
        self.left.build(input_shape)
        self.right.build(input_shape)
        self.built = True

    def call(self, inputs, turn=0):
        return self.left(inputs) if turn % 2 == 0 else self.right(inputs)


def undecided():
    model = Undecided()
    for turn in range(2):
        model(tf.constant(BATCH), turn=turn)
    return model


def graphless_model_fails():
    """Whether a model without a graph loses a weight on its way through a checkpoint."""
    first, second = undecided(), undecided()
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=first).save(f"{folder}/training")
        tf.train.Checkpoint(model=second).restore(path).assert_consumed()
    pairs = zip(first.get_weights(), second.get_weights())
    return not all(np.array_equal(*pair) for pair in pairs)


clinic.judges(
    {
        "001-C5": [not CHANGES["another width"][0], not CHANGES["one layer more"][1]],
        "001-C7": [CHANGES["a new model, the old checkpoint"][2]],
        "001-C12": [graphless_model_fails()],
    },
)

# %% [markdown]
# ## Exercise
#
# The script restores into a fresh model of the same layers, the assert passes, and the model still predicts something else.
# Mend the script below without removing a line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model(units=4)
    checkpoint = tf.train.Checkpoint(model=model)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/training")
        before = predict(model)
        with strategy.scope():
            model = make_model(units=4)
        checkpoint.restore(path).assert_consumed()
    return Proof("the new model predicts what the old one did", [predict(model)], [before])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model(units=4)
    checkpoint = tf.train.Checkpoint(model=model)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/training")
        before = predict(model)
        with strategy.scope():
            model = make_model(units=4)
        checkpoint = tf.train.Checkpoint(model=model)
        checkpoint.restore(path).assert_consumed()
    return Proof("the new model predicts what the old one did", [predict(model)], [before])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a restore that fails before it looks at any shape.
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): the same half-filled restore, in the optimizer.
