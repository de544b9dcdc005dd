# %% [markdown]
# # FM05. A `tf.Variable` is reset after restoring a checkpoint that does not name it
#
# ```text
# before the restart: [[2.]]
# after the restart:  [[1.]]      restore, load_model and load_weights raise nothing
# AssertionError: Tried to export a function which references an 'untracked' resource.     tf.saved_model.save
# ValueError: The following Variables were created within a Lambda layer (lambda) but are not tracked by said layer     Keras 2
# ```
#
# Saving follows the objects that you hand over. A variable that belongs to none of them is not written, and the restarted
# script creates it again with its first value. For layers in a list or a dictionary see [FM65](fm65_layers_in_a_list.ipynb).
#
# *Wrong result without an error, on Keras 2 and 3, with or without a strategy, in every save format.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm05",
    slug="untracked_variable",
    title="A `tf.Variable` is reset after restoring a checkpoint that does not name it",
    sees="a resumed model predicts something else, or a counter starts again, and nothing was raised",
    fix="name the variable in the checkpoint, or create it in a layer with `add_weight`",
    document="001",
    switches=("strategy", "save_format"),
    symptoms=(Symptom("SilentFailure", r"it prints 'after the restart: \[\[1\.\]\]'"),),
    claims=(
        Claim("001-C1", "a variable outside the checkpoint is reinitialised on load", "true"),
        Claim("001-C2", "applying gradients to an untracked variable raises an error", "false"),
        Claim("001-C3", "its first example runs and writes a checkpoint", {2: "true", 3: "false"}),
        Claim(
            "001-C4",
            "a variable that gets gradients must be in the checkpoint, or an error follows",
            "half",
        ),
        Claim("001-C13", "temporary variables in helper functions are a silent cause", "true"),
        Claim("001-C14", "a checkpoint tracks tensors and operations", "false"),
        Claim("001-C15", "a tensor in place of a temporary variable lets training resume", "true"),
    ),
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
# of a custom loss are lost in the same way.

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
# `tf.train.list_variables(path)` shows what is in a checkpoint.
#
# To find out before you save, call the check whose source follows the program. It raises if the checkpoint would leave out one
# of the variables:
#
# ```python
# assert_tracked(checkpoint, [temperature])
# assert_tracked(checkpoint, model.variables)  # finds layers in a list
# ```

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

# %% [markdown]
# ## What documents say
#
# "Why am I getting a Checkpointing error with apply_gradients()?" says that an untracked variable "will be reinitialized when
# you load the model", and this is true. It also says that applying gradients to it raises, and this is false: nothing is
# raised, and the trained value is lost. Its first example runs on Keras 2 only: on Keras 3 a `tf.Variable` attribute of a model
# is not one of its weights, so [there is nothing to train](fm11_unbuilt_model.ipynb).

# %% tags=["claims"]
# Trains a variable that no checkpoint has, runs the document's first example, and saves layers in a list.
import tempfile

import tensorflow as tf


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((3,)), dense])


def trained_outside_the_checkpoint():
    """A variable that gets gradients and is in no checkpoint: is that refused, and is it reset by a restart?"""
    model, scale = make_model(), tf.Variable(1.0)
    optimizer = tf.keras.optimizers.Adam()
    pairs = [(tf.ones_like(tf.identity(weight)), weight) for weight in model.trainable_variables]
    try:
        optimizer.apply_gradients([*pairs, (tf.constant(1.0), scale)])
        refused = False
    except (ValueError, KeyError):
        refused = True
    trained = float(scale)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        model, scale = make_model(), tf.Variable(1.0)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    return refused, trained != 1.0 and float(scale) == 1.0


def resumes_with_a_tensor():
    """Whether training resumes where it was if a helper computes its value in each step, as a tensor."""

    def train(model, steps):
        data = tf.ones((4, 3))
        for _ in range(steps):
            with tf.GradientTape() as tape:
                size = tf.reduce_mean(tf.abs(model(data)))  # the temporary value
                loss = tf.reduce_mean(tf.square(model(data))) / tf.stop_gradient(size)
            variables = model.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign(variable - 0.1 * gradient)

    model, whole, resumed = make_model(), make_model(), make_model()
    train(whole, 4)
    train(model, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        tf.train.Checkpoint(model=resumed).restore(path).assert_consumed()
    train(resumed, 2)
    return bool(tf.reduce_all(whole.get_weights()[0] == resumed.get_weights()[0]))


class Tracked(tf.Module):
    """A tensor, a function and a variable, each as an attribute."""

    def __init__(self):
        super().__init__()
        self.a_tensor, self.a_variable = tf.constant(1.0), tf.Variable(1.0)
        self.an_operation = tf.function(tf.square)


class FirstExample(tf.keras.Model):
    """The model of the document's first example, as printed there."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((1,)), name="w")
        self.b = tf.Variable(tf.zeros((1,)), name="b")

    def call(self, x):
        return x * self.w + self.b


def first_example_runs():
    """Whether five steps of the first example run, with its variable beside the model, and write a checkpoint."""
    model, optimizer = FirstExample(), tf.keras.optimizers.Adam()
    untracked_var = tf.Variable(1.0, name="untracked")

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x)
            loss = tf.reduce_mean(tf.square(logits - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        untracked_var.assign_add(1.0)
        return loss

    x_data, y_data = tf.random.normal((10, 1)), tf.random.normal((10, 1))
    try:
        for _ in range(5):
            train_step(x_data, y_data)
    except ValueError:  # Keras 3: not enough values to unpack, as there are no variables
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(f"{folder}/first")
        return bool(path) and float(untracked_var) == 6.0


def names_in_checkpoint(**objects):
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(**objects).save(f"{folder}/names")
        return " ".join(name for name, _ in tf.train.list_variables(path))


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
refused, forgotten = trained_outside_the_checkpoint()
model, helper = make_model(), tf.Variable(0.0, name="helper")
tracked = names_in_checkpoint(tracked=Tracked())
assert "a_variable" in tracked
session.judges(
    {
        "001-C1": [KEPT["a variable of the script"][0] == "lost"],
        "001-C2": [refused],
        "001-C3": [first_example_runs()],
        "001-C4": [refused, forgotten],
        "001-C13": [
            "helper" not in names_in_checkpoint(model=model),
            "helper" in names_in_checkpoint(model=model, helper=helper),
        ],
        "001-C14": [name in tracked for name in ("a_tensor", "an_operation")],
        "001-C15": [resumes_with_a_tensor()],
    },
)

# %% [markdown]
# ## Read next
#
# - [FM35](fm35_restore_before_build.ipynb): values that are in the file, and that a restore does not deliver.
# - [FM29](fm29_optimizer_state_lost.ipynb): save formats that leave out the optimizer's variables.
# - [FM46](fm46_restore_overwrites_hyperparameters.ipynb): the opposite, a restore that overwrites a new learning rate.
# - [FM23](fm23_variable_outside_scope.ipynb): a counter that several replicas update.
