# %% [markdown]
# # FM06. Weights do not fit a model whose architecture has changed
#
# A checkpoint from last week is restored into today's model. If a layer has another width, the restore raises. If a layer was
# added or removed, or has another activation, it may raise nothing.
#
# ```text
# Keras 3  ValueError: Received incompatible tensor with shape (1, 4) when attempting to restore variable
#   … with shape (1, 8) and name … /hidden/kernel:0.
# Keras 2  ValueError: Received incompatible tensor with shape (4,) when attempting to restore variable
#   … with shape (8,) and name hidden/bias:0.
# ```
#
# *Loud for a changed shape, silent for most other changes. Save format, strategy and Keras generation matter. From "Why am I
# getting a Checkpointing error with apply_gradients()?" (document 001).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
import strategy_clinic as clinic

session = clinic.open("fm06", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The hidden layer had four units when the weights were saved. Since then somebody has raised the default to eight. You believe
# that the file knows what the model looked like. Some formats do; a checkpoint holds values, and where in the model they belong.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, formats

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


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A checkpoint and a weights file store each value under its place in the model: "the kernel of the second layer". Loading goes
# through the model that you have now, reads the value for each place, and compares shapes. Nothing else is compared.
#
# A different width is a different shape, so it is refused. A layer that was added finds no value and keeps its random start. The
# values of a layer that was removed are not read. `restore` reports these two only if you call an assert:
# `assert_existing_objects_matched` raises for the first, `assert_consumed` for both. An activation has no weights, so no assert
# raises.
#
# The picture restores a checkpoint into five models. See [the training checkpoints
# guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).


# %%
def said_of(check):
    try:
        check()
    except AssertionError:
        return "raises"
    return "passes"


def restores(change):
    """What `restore` and two asserts say of another model, and what it predicts."""
    first, second = (make_model(**{"units": 4, "extra": 1} | each) for each in ({}, change))
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=first).save(f"{folder}/training")
        try:
            status = tf.train.Checkpoint(model=second).restore(path)
        except ValueError:
            return ["raises", "not reached", "not reached", "not reached"]
        said = [said_of(status.assert_existing_objects_matched), said_of(status.assert_consumed)]
    same = np.allclose(predict(first), predict(second))
    return ["accepts", *said, "the same" if same else "others"]


CHANGES = {
    "the same layers": restores({}),
    "another width": restores({"units": 8}),
    "one layer added": restores({"extra": 2}),
    "one layer removed": restores({"extra": 0}),
    "another activation": restores({"activation": "relu"}),
}
COLUMNS = ["restore", "assert_existing_\nobjects_matched", "assert_\nconsumed", "predictions"]
figures.words(CHANGES, COLUMNS, ["raises", "not reached", "others"])

# %% [markdown]
# ## The fix
#
# Write what builds the model beside its weights, and build from that. Before:
#
# ```python
# import tempfile
# import tensorflow as tf
#
# def make_model(units):
#     layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)]
#     return tf.keras.Sequential(layers)
#
# path = tf.train.Checkpoint(model=make_model(4)).save(f"{tempfile.mkdtemp()}/training")
# model = make_model(8)  # today's default
# tf.train.Checkpoint(model=model).restore(path)  # ValueError: Received incompatible tensor with shape
# ```
#
# After, with the JSON that Keras writes of a model:
#
# ```python
# import tempfile
# import tensorflow as tf
#
# folder, dense = tempfile.mkdtemp(), tf.keras.layers.Dense
# model = tf.keras.Sequential([tf.keras.Input((1,)), dense(4), dense(1)])
# before = model(tf.ones((1, 1)))
# tf.io.write_file(f"{folder}/model.json", model.to_json())
# path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
# model = tf.keras.models.model_from_json(tf.io.read_file(f"{folder}/model.json").numpy().decode())
# tf.train.Checkpoint(model=model).restore(path).assert_consumed()
# print(bool(before == model(tf.ones((1, 1)))))  # True
# ```
#
# Formats such as `keras` hold the architecture as well. Of the checks in the picture, only comparing predictions catches every
# bad restore that raises nothing. Keep one prediction beside the weights for it.


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


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
SETUPS = [one.but(save_format=each) for each in ("checkpoint", "weights_h5", "keras")]
SETUPS += [one.but(strategy="mirrored", devices=2), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `keras`, `h5`, `saved_model` or `npz`: the failure is gone, because these files bring the architecture along. Choose
# `weights_h5`: each Keras generation refuses in words of its own.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "Why am I getting a Checkpointing error with apply_gradients()?" says:
#
# > tensorflow's checkpointing mechanism heavily relies on a static graph. if you are adding or removing layers or changing the
# > number of variables between training sessions, the checkpoint might not be able to load back the proper state.
#
# The second sentence is right. The first is not: checkpoints follow objects, and a model whose `call` chooses its layers by a
# Python `if` is saved and restored like any other. The document's example cannot show the second sentence:
#
# > model = create_model(input_shape) #this can trigger the issue since it has different number of layers.
#
# The checkpoint still holds the first model *object*, and restores values into that one; the new model gets none. What the
# example raises has another reason, which is judged in [fm08](fm08_checkpoint_path_wrong.ipynb).


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


def new_model_is_restored():
    """Whether a checkpoint restores into the model that has taken over the name of its first one."""
    model = make_model(units=4)
    checkpoint = tf.train.Checkpoint(model=model)
    with tempfile.TemporaryDirectory() as folder:
        path, saved = checkpoint.save(f"{folder}/training"), model.get_weights()
        model = make_model(units=4)
        checkpoint.restore(path)
    return all(np.array_equal(*pair) for pair in zip(saved, model.get_weights()))


session.judges(
    {
        "001-C5": [
            CHANGES["another width"][0] == "raises",
            CHANGES["one layer added"][2] == "raises",
        ],
        "001-C7": [new_model_is_restored()],
        "001-C12": [graphless_model_fails()],
    },
)

# %% [markdown]
# ## Exercise
#
# This model gives one score to each word of a vocabulary. Since the weights were saved, the vocabulary has got a fourth word.
# The old vocabulary is beside the weights. Make the restored model score as it did.


# %% tags=["exercise"]
def make_scores(words):
    layers = [tf.keras.Input((2,)), tf.keras.layers.Embedding(len(words), 1)]
    return tf.keras.Sequential(layers)


@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        words = ["red", "green", "blue"]
        model = make_scores(words)
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        Path(folder, "words.json").write_text(json.dumps(words))
        before = np.asarray(model(tf.constant([[0, 2]])))
        words = ["red", "green", "blue", "white"]
        model = make_scores(words)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
        after = np.asarray(model(tf.constant([[0, 2]])))
    return Proof("the restored model scores as it did", [after], [before])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        words = ["red", "green", "blue"]
        model = make_scores(words)
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        Path(folder, "words.json").write_text(json.dumps(words))
        before = np.asarray(model(tf.constant([[0, 2]])))
        words = json.loads(Path(folder, "words.json").read_text())
        model = make_scores(words)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
        after = np.asarray(model(tf.constant([[0, 2]])))
    return Proof("the restored model scores as it did", [after], [before])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a restore that fails before it compares shapes, and a table
#   of which assert sees what.
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): a restore that leaves slot variables of the optimizer as
#   they were.
