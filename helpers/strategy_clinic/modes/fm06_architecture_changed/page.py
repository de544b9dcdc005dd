# %% [markdown]
# # FM06. `Received incompatible tensor with shape`: loading weights into a changed model
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: Received incompatible tensor with shape (1, 4) when attempting to restore variable with shape (1, 8) and name hidden/kernel:0.` | `restore` | 2, 3 |
# | `ValueError: A total of 2 objects could not be loaded. Example error message for object <Dense ...>` | `load_weights` of `.weights.h5` or `.keras`. It goes on with what `restore` raises under a strategy: `The shape of the target variable and the shape of the target value in variable.assign(value) must match` | 3 |
# | `ValueError: Layer 'extra' expected 2 variables, but received 0 variables during loading.` | the same, one layer more | 2, 3 |
# | `ValueError: Layer count mismatch when loading weights from file. Model expected 3 layers, found 2` | `load_weights` of `.h5` | 2, 3 |
# | `AssertionError: Found 2 Python objects that were not bound to checkpointed values, likely due to changes in the Python program.` | `assert_consumed` after `restore` | 2, 3 |
# | `ValueError: Cannot assign value to variable ' hidden/kernel:0': Shape mismatch.The variable shape (1, 8), and the assigned value shape (1, 4) are incompatible.` | `load_weights`; `restore` under a strategy. On a TPU the first call raises `Input 0 of layer "score" is incompatible` | 2 |
#
# The model that loads the weights was built with different layers from the model that saved them.
#
# *Raises for a different shape, on Keras 2 and 3, under every strategy. Wrong result without an error for most other changes.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm06",
    slug="architecture_changed",
    title="`Received incompatible tensor with shape`: loading weights into a changed model",
    sees="loading weights raises a shape error, or fills only a part of the model and raises nothing",
    fix="build the model as it was saved, load, and copy the layers that are the same with `set_weights`",
    document="001",
    switches=("save_format", "strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"The shape of the target variable and the shape of the target value .* must match",
            strategies=("mirrored", "tpu_traced", "tpu"),
            formats=("checkpoint",),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"Cannot assign value to variable .*Shape mismatch",
            strategies=("mirrored", "tpu_traced", "tpu"),
            formats=("checkpoint",),
            keras=(2,),
        ),
        Symptom("ValueError", r"Received incompatible tensor with shape", formats=("checkpoint",)),
        Symptom(
            "ValueError",
            r"objects could not be loaded",
            formats=("weights_h5",),
            keras=(3,),
        ),
        # A TPU's variable accepts a value of any shape, so the first call is the first to notice.
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
        Symptom("ValueError", r"is not compatible with provided weight shape", formats=("npz",)),
    ),
    prints="same predictions: True",
    exercise_prints="same scores: True",
    unavailable={
        "multi_worker": "each of its processes would need a file of its own",
        "saved_model": "it is loaded as a function, and no model is built",
    },
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
# ## The program
#
# The hidden layer had four units when the weights were saved, and has eight now.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Build the model as it was. To be independent of the code, save a `.keras` file, which holds the layers as well, or keep
# `model.to_json()` beside the checkpoint and call `tf.keras.models.model_from_json` (Sequential and functional models).
#
# If only the last layers have changed, load what still fits:
#
# ```python
# model.load_weights("old.weights.h5", skip_mismatch=True)  # warns of what it skips, and leaves it random
# ```
#
# This goes by class and position, not by name: a `Dense` inserted before others gets the weights of the first of them. An older
# `.h5` can go by name: `load_weights("old.h5", by_name=True, skip_mismatch=True)`. In a checkpoint, restore the part that has
# not changed, here the attribute `body` of a subclass of `Model`:
#
# ```python
# body = tf.train.Checkpoint(body=model.body)
# tf.train.Checkpoint(model=body).restore(path).expect_partial()
# ```
#
# In each other case build the old model, restore it, and copy its weights to the new one, as in the exercise.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# A TensorFlow checkpoint stores each value under its place in the object graph, such as "the kernel of the model's second
# layer". `restore` compares shape and type with the model that you have now, and ignores what is missing on either side.
# `assert_existing_objects_matched` raises for a variable without a value, `assert_consumed` also for a value without a
# variable.
#
# A `.weights.h5` raises for a layer that finds no values, and ignores values without a layer. An `.h5` also counts the layers.
# Both convert types.
#
# Nothing raises if an activation changes, or the order of layers of one shape. Only comparing predictions finds every
# difference: keep one prediction beside the weights.
#
# A checkpoint object keeps the model *object* that it was made with. If another model gets the same name in your program,
# `restore` still restores the first.
#
# The table loads the weights of three layers into six models. See [the training checkpoints
# guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).

# %% tags=["figure"]
# One program for each change: it saves one model in three formats, and loads it into the changed one.
from strategy_clinic import figures

PROGRAM = """\
import numpy as np
import tensorflow as tf


def make_model(units=4, heads=1, activation="tanh", order=1):
    first = tf.keras.layers.Dense(units, activation=activation, name="first")
    hidden = [first, tf.keras.layers.Dense(units, name="second")][::order]
    ends = [tf.keras.layers.Dense(1, name=f"dense_{{n}}") for n in range(heads)]
    return tf.keras.Sequential([tf.keras.Input((1,)), *hidden, *ends])


def restore(model):
    return tf.train.Checkpoint(model=model).restore(path)


model = make_model()
path = tf.train.Checkpoint(model=model).save("saved/checkpoint")
model.save_weights("changed.weights.h5")
model.save("changed.h5")
x = tf.constant([[0.5], [-1.0]])
for load in (
    restore,
    lambda model: restore(model).assert_consumed(),
    lambda model: model.load_weights("changed.weights.h5"),
    lambda model: model.load_weights("changed.h5"),
):
    changed = make_model({change})
    try:
        load(changed)
    except (ValueError, AssertionError):
        print("raises")
    else:
        print("right" if np.allclose(model(x), changed(x)) else "wrong")
"""
CHANGES = {
    "the same layers": "",
    "a different width": "units=8",
    "one layer added": "heads=2",
    "one layer removed": "heads=0",
    "a different activation": 'activation="relu"',
    "two layers exchanged": "order=-1",
}
alone = session.setup.but(strategy="default", devices=1)
texts = {name: PROGRAM.format(change=change) for name, change in CHANGES.items()}
OUTCOMES = {name: words.split() for name, (words,) in session.prints(texts, [alone]).items()}
COLUMNS = ["restore", "+ assert_\nconsumed", ".weights.h5", ".h5"]
figures.words(OUTCOMES, COLUMNS, ["raises", "wrong"], "How does the changed model predict?")

# %% [markdown]
# ## Try other setups
#
# With `keras` or `h5` the failure is gone: `load_model` builds the model from the file. With `weights_h5` or `npz`, and with a
# different strategy, the message changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with three formats, under `MirroredStrategy`, and with the other version of Keras:

# %% tags=["table"]
SETUPS = [alone.but(save_format=each) for each in ("checkpoint", "weights_h5", "keras")]
SETUPS += [
    each.but(save_format="checkpoint")
    for each in (
        alone.but(strategy="mirrored", devices=2),
        alone.but(keras=session.setup.other_keras),
    )
]
session.table(SETUPS)

# %% [markdown]
# ## Exercise
#
# This model has one score for each word of a vocabulary, and the vocabulary has got a fourth word. Change the program so that
# the old words keep their scores in the model for four words.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests that weights are loaded by name if a layer was inserted.
import tempfile
import warnings
import numpy as np
import tensorflow as tf


def same_weights(first, second):
    return all(np.array_equal(*pair) for pair in zip(first, second))


def comes_back_by_name(name, **options):
    """Whether a layer gets its weights from a file if a layer of its class was inserted before it."""
    hidden, score = (tf.keras.layers.Dense(units, name=f"of_{units}") for units in (4, 1))
    old = tf.keras.Sequential([tf.keras.Input((4,)), hidden, score])
    new = tf.keras.layers.Dense(4, name="inserted")
    layers = [type(layer).from_config(layer.get_config()) for layer in (hidden, score)]
    changed = tf.keras.Sequential([tf.keras.Input((4,)), new, *layers])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = f"{folder}/{name}"
        (old.save_weights if name.endswith(".weights.h5") else old.save)(path)
        changed.load_weights(path, **options)
    return same_weights(hidden.get_weights(), layers[0].get_weights())


assert comes_back_by_name("old.h5", by_name=True, skip_mismatch=True)
if session.setup.keras == 3:
    assert not comes_back_by_name("old.weights.h5", skip_mismatch=True)

# %% [markdown]
# ## Read next
#
# - [FM08](fm08_checkpoint_path_wrong.ipynb): a restore that fails before it compares shapes, and which assert sees what.
# - [FM35](fm35_restore_before_build.ipynb): a restore into a model that has no variables yet.
# - [FM27](fm27_format_not_loadable.ipynb): a file that `load_model` refuses.
# - [FM09](fm09_optimizer_slots_missing.ipynb): a restore that leaves slot variables of the optimizer as they were.
# - What an answer on checkpoints says: [document 001](documents/001_checkpoints.ipynb).
