# %% [markdown]
# # FM35. `Checkpoint.restore` before the first call of a Keras 3 model: some weights stay random
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `same prediction: False` | `restore` before the first call | 3 |
# | `WARNING: Value in checkpoint could not be found in the restored object` | logged when the program ends | 3 |
# | `UserWarning: Gradients do not exist for variables ['…/kernel']` | `fit` | 3 |
# | `AssertionError: Unresolved object in checkpoint (root).model.hidden._kernel` | `assert_consumed()` at once; see FM06, too | 3 |
# | `AttributeError: 'LSTMCell' object has no attribute 'kernel'` | the first call after `restore`, if the first layer is an `LSTM` | 3 |
# | `AttributeError: 'GRUCell' object has no attribute 'kernel'` | the same for a `GRU` | 3 |
#
# A subclassed model has no variables before its first call. On Keras 3 the first call creates some of them twice, and only the
# first copy gets the value from the checkpoint.
#
# *Wrong result without an error, or an error with `LSTM` and `GRU`, on Keras 3 only, under every strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm35",
    slug="restore_before_build",
    title="`Checkpoint.restore` before the first call of a Keras 3 model: some weights stay random",
    sees="a restored model predicts nonsense, although `restore` and its assert raised nothing",
    fix="call the model on a batch before `restore`",
    document="001",
    switches=("keras",),
    symptoms=(Symptom("SilentFailure", r"it prints 'same prediction: False'", keras=(3,)),),
    prints="same prediction: True",
    exercise_prints="same after the restart: True",
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
# ## The program
#
# A new model restores the checkpoint of a trained one. Both should predict the same.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call the model on one batch before `restore`. Zeros of the right shape are enough.
#
# `restored.build((None, 3))` is also enough for this model, but not for a model with a layer that contains layers and has no
# `build` method of its own. Keras then warns that the layer is marked as built "despite not being actually built".
#
# To check a restore, keep the status that it returns, and call `status.assert_existing_objects_matched()` **after** the first
# call of the model. It raises an `AssertionError` for the program above. Or use `save_weights` and `load_weights`, which raises
# on both versions of Keras if the model has no variables yet.
#
# `load_model` does not call the model either. On Keras 3 it leaves all weights as they are, and says nothing of them, if the
# model has a `build` method that does not build its layers, such as `super().build(shape)`. Call `build` of each layer there, or
# leave the method out. Keras 2 raises `Layer 'dense_1' expected 0 variables, but received 2 variables during loading`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `restore` is deferred: TensorFlow keeps each value until its variable is created, and assigns it then. See [delayed
# restorations](https://www.tensorflow.org/guide/checkpoint#delayed_restorations) in the guide.
#
# Keras 3 builds the layers twice. It builds a layer that has no `build` method by a symbolic run of its `call`. During this run
# a new Keras variable has no `tf.Variable` yet. The first sublayer creates its kernel, TensorFlow tries to assign the saved
# value, and the assignment raises. Keras catches the exception and runs `call` on the real batch, which creates the kernel a
# second time. The checkpoint counts its value as used, so the second kernel keeps its random values. `model.weights` now
# contains both kernels.
#
# Each layer that contains layers repeats this. The table counts the kernels and biases of three `Dense` layers.
#
# `assert_existing_objects_matched()` right after `restore` passes, because no variable exists yet. `assert_consumed()` raises
# there for every model without variables. After the first call it passes on Keras 2, and on Keras 3 it raises again.
#
# `restore` creates the counter `save_counter`, so it belongs in the strategy's scope, and so does the first call, which creates
# the weights.
#
# `Sequential` and functional models are not affected, whether they know their input shape or not: they build their layers one
# by one. A `Sequential` inside a subclassed model is affected.

# %% tags=["figure"]
# Models of three `Dense` layers. How many of their six kernels and biases have another value after a restore?
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import figures

BATCH = tf.ones((1, 3))


class Block(tf.keras.layers.Layer):
    def __init__(self, *parts):
        super().__init__()
        self.first, self.second = parts

    def call(self, inputs):
        return self.second(self.first(inputs))


class Network(tf.keras.Model):
    def __init__(self, *parts):
        super().__init__()
        self.first, self.second, self.third = parts

    def call(self, inputs):
        return self.third(self.second(self.first(inputs)))


class Nested(tf.keras.Model):
    def __init__(self, inner, last):
        super().__init__()
        self.inner, self.last = inner, last

    def call(self, inputs):
        return self.last(self.inner(inputs))


def functional(first, second, third):
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, third(second(first(inputs))))


def lost(make_model, call_first):
    """Restores a new model and counts the variables that do not have the saved values."""
    trained, restored = ([tf.keras.layers.Dense(3) for _ in range(3)] for _ in range(2))
    saved, model = make_model(*trained), make_model(*restored)
    saved(BATCH)
    for layer in trained:
        layer.bias.assign([1.0, 2.0, 3.0])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=saved).save(f"{folder}/training")
        if call_first:
            model(BATCH)
        tf.train.Checkpoint(model=model).restore(path).expect_partial()
        model(BATCH)
    variables = [
        [variable for layer in layers for variable in (layer.kernel, layer.bias)]
        for layers in (trained, restored)
    ]
    return sum(not np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(*variables))


MODELS = {
    "tf.keras.Sequential": lambda a, b, c: tf.keras.Sequential([a, b, c]),
    "functional": functional,
    "subclassed": Network,
    "a model with a block of two layers": lambda a, b, c: Nested(Block(a, b), c),
    "a model with a Sequential": lambda a, b, c: Nested(tf.keras.Sequential([a, b]), c),
}
LOST = {name: [lost(make, False), lost(make, True)] for name, make in MODELS.items()}
WORDS = {name: [f"{count} of 6" for count in counts] for name, counts in LOST.items()}
BAD = [f"{count} of 6" for count in range(1, 7)]
figures.words(WORDS, ["restore first", "call first"], BAD, "How many stay random?")

# %% tags=["figure"]
# The broken program with a check of its restore.
LINES = """    tf.train.Checkpoint(model=restored).restore(path)  # wrong: it has no variables yet
    after = restored(batch)"""
KEPT = "    status = tf.train.Checkpoint(model=restored).restore(path)\n"
CALL = "    after = restored(batch)\n"
CHECKED = {}
for name in ("assert_existing_objects_matched", "assert_consumed"):
    check = f"    status.{name}()\n"
    CHECKED |= {
        f"{name}, at once": KEPT + check + CALL,
        f"{name}, after the call": KEPT + CALL + check,
    }
BOTH = [session.setup.but(keras=version) for version in (3, 2)]
said = session.prints(session.variants("broken", LINES, CHECKED), BOTH)
SAYS = {
    name: ["raises" if word == "AssertionError" else "passes" for word in row]
    for name, row in said.items()
}
figures.words(SAYS, ["Keras 3", "Keras 2"], "raises", "What does a check of the broken program do?")

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the failure is gone.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies with two devices, and with the other version of Keras:

# %% tags=["table"]
alone = session.setup.but(strategy="default", devices=1)
two = alone.but(strategy="mirrored", devices=2)
session.table([alone, two, two.but(strategy="central_storage"), alone.but(keras=alone.other_keras)])

# %% [markdown]
# ## Exercise
#
# This job can be stopped at any time. When it starts again, it builds its model and restores the newest checkpoint. It still
# starts with a random model. Change one line.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM09](fm09_optimizer_slots_missing.ipynb): an optimizer that is restored before its variables exist.
# - [FM65](fm65_layers_in_a_list.ipynb): on Keras 3 a checkpoint does not contain layers that a model keeps in a Python list.
# - [FM06](fm06_architecture_changed.ipynb): other restores in which an assert passes and values are missing.
# - [FM08](fm08_checkpoint_path_wrong.ipynb): a `restore` that reads no file at all.
# - [FM11](fm11_unbuilt_model.ipynb): `load_weights` before the first call, which raises.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
