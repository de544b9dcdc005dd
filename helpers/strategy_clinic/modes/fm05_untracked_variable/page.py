# %% [markdown]
# # FM05. A `tf.Variable` is reset after restoring a checkpoint that does not name it
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `after the restart: [[1.]]` | in place of [[2.]]; `restore`, `load_model` and `load_weights` raise nothing | 2, 3 |
# | `AssertionError: Tried to export a function which references an 'untracked' resource.` | `tf.saved_model.save` | 2, 3 |
# | `ValueError: The following Variables were created within a Lambda layer (lambda) but are not tracked by said layer` | the first call of a `Lambda` layer | 2 |
#
# Saving follows the objects that you hand over. A variable that belongs to none of them is not written, and the restarted
# script creates it again with its first value. For layers in a list or a dictionary see [FM65](fm65_layers_in_a_list.ipynb).
#
# *Wrong result without an error, on Keras 2 and 3, with or without a strategy, in every save format.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm05",
    slug="untracked_variable",
    title="A `tf.Variable` is reset after restoring a checkpoint that does not name it",
    sees="a resumed model predicts something else, or a counter starts again, and nothing was raised",
    fix="name the variable in the checkpoint, or create it in a layer with `add_weight`",
    document="001",
    switches=("strategy", "save_format"),
    symptoms=(Symptom("SilentFailure", r"it prints 'after the restart: \[\[1\.\]\]'"),),
    prints="before the restart: [[2.]]\nafter the restart: [[2.]]",
    exercise_prints="next learning rate: 0.0125",
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

session = clinic.open("fm05", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The training lowers a temperature, by which the inputs are divided. Only the model is saved. An epoch counter and the variables
# of a custom loss are lost in the same way. So are the numbers of words that follow from the order of a `set`, which is another
# one in each process: number `sorted(set(words))`, or save the numbers.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Name the variable in the checkpoint, where you save and where you restore. For a checkpoint that was written before,
# `assert_consumed` then raises `Found 1 Python objects that were not bound to checkpointed values`: the value is not in it.
# Restore without the assert, and set the variable by hand.
#
# The Keras formats save a model and nothing else. For them create the variable in a layer with `add_weight`, or write a
# checkpoint beside the file, as the fixed program does.
#
# `tf.saved_model.save` needs the variable in an attribute of the object that it saves: `module.temperature = temperature`.
#
# `tf.train.list_variables(path)` shows what is in a checkpoint.
#
# To find out before you save, call the check whose source follows the program. It raises if the checkpoint would leave out one
# of the variables:
#
# ```python
# assert_tracked(checkpoint, [temperature])
# assert_tracked(checkpoint, model.weights)  # finds layers in a list
# ```
#
# `model.variables` of Keras 3 also has the state of each `Dropout`, which no checkpoint holds.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_tracked))

# %% [markdown]
# ## Why
#
# A checkpoint starts at the objects that you name and follows their attributes. Loading follows the same objects, finds a value
# for each, and reports success. `assert_consumed` passes, too.
#
# The Keras formats of Keras 3 save only what `add_weight` and layers created. A plain `self.scale = tf.Variable(...)` in a layer
# is in a checkpoint, and not in `.keras`, `.weights.h5` and `.h5`. Keras 2 saves it in all of them.
#
# The table saves a layer that uses a variable created in one of three ways. See [the training checkpoints
# guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).

# %% tags=["figure"]
# One program for each way to create a variable: it saves a layer that uses it in four formats, and loads the value.
from strategy_clinic import figures

PROGRAM = """\
import tensorflow as tf


@tf.keras.utils.register_keras_serializable()
class Scale(tf.keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        {create}

    def call(self, inputs):
        return inputs * {name}


def make_model():
    global variable
    variable = tf.Variable(1.0, trainable=False)
    return tf.keras.Sequential([tf.keras.Input((1,)), Scale()])


def restore():
    loaded = make_model()
    tf.train.Checkpoint(model=loaded).restore(path)
    return loaded


def load_weights():
    loaded = make_model()
    loaded.load_weights("scale.weights.h5")
    return loaded


def load_model(path):
    make_model()  # what a script creates when it starts
    return tf.keras.models.load_model(path)


model = make_model()
{saved}.assign(0.5)
path = tf.train.Checkpoint(model=model).save("saved/checkpoint")
model.save("scale.keras")
model.save_weights("scale.weights.h5")
model.save("scale.h5")
for load in (
    restore,
    lambda: load_model("scale.keras"),
    load_weights,
    lambda: load_model("scale.h5"),
):
    prediction = load()(tf.ones((1, 1)))
    print("kept" if float(prediction[0, 0]) == 0.5 else "lost")
"""
WEIGHT = 'self.add_weight(name="scale", shape=(), initializer="ones", trainable=False)'
ATTRIBUTE = "self.scale", "model.layers[-1].scale"
WAYS = {
    "a variable of the script": ("pass", "variable", "variable"),
    "self.scale = tf.Variable(...)": (
        "self.scale = tf.Variable(1.0, trainable=False)",
        *ATTRIBUTE,
    ),
    "self.add_weight(...)": (f"self.scale = {WEIGHT}", *ATTRIBUTE),
}
alone = session.setup.but(strategy="default", devices=1)
texts = {
    way: PROGRAM.format(create=create, name=name, saved=saved)
    for way, (create, name, saved) in WAYS.items()
}
KEPT = {way: words.split() for way, (words,) in session.prints(texts, [alone]).items()}
COLUMNS = ["checkpoint", ".keras", ".weights.h5", ".h5"]
figures.words(KEPT, COLUMNS, "lost", "Is the value in the file?")

# %% [markdown]
# ## Try other setups
#
# The temperature is lost in every save format and under every strategy.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with three formats, under `MirroredStrategy`, and with the other version of Keras. The fixed program always
# writes a checkpoint:

# %% tags=["table"]
SETUPS = [alone.but(save_format=each) for each in ("checkpoint", "keras", "weights_h5")]
mirrored = alone.but(strategy="mirrored", devices=2, save_format="checkpoint")
session.table([*SETUPS, mirrored, mirrored.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This script halves its learning rate after each epoch. After a restart it uses the first learning rate again. Make the
# checkpoint remember the epoch.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests which collections of layers come back from a checkpoint.
import tempfile
import tensorflow as tf


class Blocks(tf.keras.Model):
    """Calls its layers one after the other, and keeps them in a collection of this kind."""

    def __init__(self, collect, make=lambda: tf.keras.layers.Dense(3)):
        super().__init__()
        self.blocks = collect([make(), make()])
        self(tf.ones((1, 3)))

    def call(self, inputs):
        for block in self.blocks.values() if isinstance(self.blocks, dict) else self.blocks:
            inputs = block(inputs)
        return inputs


def layers_come_back(collect, make=lambda: tf.keras.layers.Dense(3)):
    """Whether a checkpoint and its assert bring back the weights of such a model."""
    model, loaded = Blocks(collect, make), Blocks(collect, make)
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/blocks")
        tf.train.Checkpoint(model=loaded).restore(path).assert_consumed()
    pairs = zip(model.get_weights(), loaded.get_weights())
    return all(bool(tf.reduce_all(one == other)) for one, other in pairs)


def in_dictionary(layers):
    return {"first": layers[0], "second": layers[1]}


for collect in (list, in_dictionary):
    assert layers_come_back(collect) == (session.setup.keras == 2)
for make in (tf.keras.layers.BatchNormalization, lambda: tf.keras.layers.Dense(3)):
    assert layers_come_back(tuple, make)

# %% [markdown]
# ## Read next
#
# - [FM35](fm35_restore_before_build.ipynb): values that are in the file, and that a restore does not deliver.
# - [FM29](fm29_optimizer_state_lost.ipynb): save formats that leave out the optimizer's variables.
# - [FM46](fm46_restore_overwrites_hyperparameters.ipynb): the opposite, a restore that overwrites a new learning rate.
# - [FM23](fm23_variable_outside_scope.ipynb): a counter that several replicas update.
# - What an answer on checkpoints says: [document 001](documents/001_checkpoints.ipynb).
