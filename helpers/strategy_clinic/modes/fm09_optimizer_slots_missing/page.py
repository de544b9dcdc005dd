# %% [markdown]
# # FM09. Restoring the first checkpoint keeps the optimizer's momentum
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: the second training from the same checkpoint gives other weights | `restore` of a checkpoint from before the first step | 2, 3 |
# | `AssertionError: Found 2 Python objects that were not bound to checkpointed values, likely due to changes in the Python program. … sgd/sequential_dense_bias_momentum …` | `assert_consumed`; FM06 has this message, too | 2, 3 |
# | `AssertionError: Unresolved object in checkpoint (root).optimizer…` | the reverse: `assert_consumed` of a file with slots, before the optimizer is built | 2, 3 |
# | `` ValueError: You are calling `set_weights()` on an optimizer that has not yet been built. `` | `optimizer.set_weights`, with the same cause | 2, 3 |
#
# The checkpoint was saved before the first step. The optimizer had no momentum then, so a restore leaves the momentum as it is.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy, with each optimizer that has slots.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm09",
    slug="optimizer_slots_missing",
    title="Restoring the first checkpoint keeps the optimizer's momentum",
    sees="after a rollback to the first checkpoint the same training gives different weights",
    fix="call `optimizer.build(model.trainable_variables)` before the first save, and `assert_consumed()`",
    document="001",
    switches=("strategy",),
    symptoms=(Symptom("SilentFailure", r"it prints 'the same training again: False'"),),
    prints="the same training again: True",
    exercise_prints="learning rate 0.25 gives [1.]\nlearning rate 0.125 gives [0.5625]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run there",
        "parameter_server": "`fit` does not run there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm09", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It saves a checkpoint as a clean start, trains two steps, restores the start and trains the same two steps again. Both
# trainings should end with the same bias.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Build the optimizer before the first save, so that the file holds its slots, as zeros. `assert_consumed()` raises if a variable
# of the program got no value from the file. On Keras 3 it does not see layers in a Python list, see
# [FM65](fm65_layers_in_a_list.ipynb).

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For a file that is already written, restore it and compile again with a new optimizer before `fit`. That repeats the training
# exactly, too. It is also the shorter repair if you use `fit` only:
#
# ```python
# checkpoint.restore(path)
# with strategy.scope():  # outside of it `fit` of Keras 3 raises
#     model.compile(tf.keras.optimizers.SGD(0.125, momentum=0.5), loss="mse")
# ```

# %% [markdown]
# ## Why
#
# An optimizer with momentum keeps one slot variable for each weight. Adam keeps two. It creates them when it is built, and that
# happens in its first step. A checkpoint from before that step holds the learning rate and a step count of zero, and no slots.
#
# `restore` writes the values of the file into the variables, and leaves all other variables as they are. Weights and step count
# go back to the start. The slots keep what the first training put into them, so the second training starts with the momentum of
# the first.
#
# In a new process nothing is wrong, because the slots are created there as zeros. Plain SGD has no slots and is not affected.
#
# The picture follows the largest momentum through a rollback. See [the guide to training
# checkpoints](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).

# %% tags=["figure"]
# The largest momentum in each step of a training, a restore and the same training again, for both files.
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import figures

STEPS = 4


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def momentum(model):
    """The largest momentum, after step count and learning rate; before the first step there is none."""
    slots = [np.abs(np.asarray(value)).max() for value in model.optimizer.variables[2:]]
    return float(max(slots, default=0.0))


def train(model):
    """The same steps on the same data, every time; returns the momentum after each."""
    seen = []
    for number in range(STEPS):
        data = np.random.default_rng(number).normal(size=(8, 3)).astype("float32")
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        seen.append(momentum(model))
    return seen


def through_a_rollback(build_first):
    """The momentum over both trainings, and how many values the file holds."""
    model, checkpoint = make_model()
    if build_first:
        model.optimizer.build(model.trainable_variables)
    before = momentum(model)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")
        held = len(tf.train.list_variables(path))
        first = train(model)
        checkpoint.restore(path)
    return [before, *first, *train(model)], held


with_slots, without_slots = through_a_rollback(True), through_a_rollback(False)
LIVES = {"built before the save": with_slots[0], "saved before the first step": without_slots[0]}
figures.timeline(LIVES, STEPS + 1, "rollback", "largest momentum")

# %% [markdown]
# ## Try other setups
#
# Neither the strategy nor the number of devices matters: an optimizer creates its slots late under each of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
session.table([*SETUPS, one.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program tries two learning rates from the same start. The second one should end as if the first had never been tried, with
# a bias of 0.5625. Add one line.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM29](fm29_optimizer_state_lost.ipynb): formats that save no variables of the optimizer.
# - [FM10](fm10_variable_unknown_to_optimizer.ipynb): an optimizer that was built with fewer variables.
# - [FM46](fm46_restore_overwrites_hyperparameters.ipynb): a restore that brings back the old learning rate.
# - [FM08](fm08_checkpoint_path_wrong.ipynb): a restore that restores nothing.
# - What an answer on checkpoints says: [document 001](documents/001_checkpoints.ipynb).
