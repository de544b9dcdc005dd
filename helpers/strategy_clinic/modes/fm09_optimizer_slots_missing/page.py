# %% [markdown]
# # FM09. A checkpoint saved before the first step has no optimizer slots
#
# You save the model as it is at the start, train, go back to that start and train again on the same data. The second training
# leads to other weights than the first.
#
# ```text
# weight after the first training 0.781, weight after the rollback and the same training 0.553
# ```
#
# *Silent. Every strategy and both Keras generations have it. From "Why am I getting a Checkpointing error with
# apply_gradients()?" (document 001).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm09",
    slug="optimizer_slots_missing",
    title="A checkpoint saved before the first step has no optimizer slots",
    sees="after a rollback to the first checkpoint the same training gives other weights",
    fix="call `optimizer.build(model.trainable_variables)` before the first save, and assert what `restore` did",
    document="001",
    switches=(),
    symptoms=(Symptom("SilentFailure", r"training after the rollback repeats the first"),),
    claims=(
        Claim("001-C11", "saving before applying the gradients saves a different model", "true"),
    ),
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
# ## What goes wrong
#
# The first checkpoint is written before the first step, so that there is a clean start to come back to. It holds model and
# optimizer. You believe that restoring it undoes all that training did.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

STEPS = 4


def make_model():
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    )
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    return model


def batch(step):
    return np.random.default_rng(step).normal(size=(8, 3)).astype("float32")


def make_slots(strategy, model):
    """What an optimizer does before its first step: a momentum for every weight. A second call changes nothing."""
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)


def state(model):
    """Weights, momenta, learning rate and the count of steps."""
    return [tf.identity(variable) for variable in [*model.variables, *model.optimizer.variables]]


# %%
def start(strategy):
    with strategy.scope():
        model = make_model()
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def train(strategy, model):
    """The same steps on the same data, every time; returns where they lead."""
    make_slots(strategy, model)

    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step(data):
        strategy.run(step, args=(data,))

    for number in range(STEPS):
        train_step(tf.constant(batch(number)))
    return state(model)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")  # guilty: the optimizer has no slots yet
        first = train(strategy, model)
        checkpoint.restore(path)
    return Proof("training after the rollback repeats the first", train(strategy, model), first)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# An optimizer keeps slot variables, such as one momentum for each weight. It creates them before its first step, when it is
# given the weights. A checkpoint from before that step holds the learning rate and a step count of zero, and no slot variable.
#
# `restore` writes the values of the file into the variables and leaves all other variables as they are. Weights and step count
# go back to the start. The momenta keep what training put into them. The second training starts with the momentum of the first.
#
# In a new process nothing is wrong, because there the slot variables are created as zeros.
#
# The picture follows the largest momentum through a rollback. See [the training checkpoints
# guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).


# %%
def momentum(model):
    """The largest momentum, after step count and learning rate; before the first step there is none."""
    slots = [np.abs(np.asarray(value)).max() for value in model.optimizer.variables[2:]]
    return float(max(slots, default=0.0))


def through_a_rollback(slots_first):
    """The momentum over a training, a rollback and the same training again; and how many values the file holds."""
    alone = build_strategy(session.setup.but(strategy="default", devices=1))
    model, checkpoint = start(alone)
    if slots_first:
        make_slots(alone, model)
    seen = [momentum(model)]

    def live():
        for number in range(STEPS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(batch(number)) - 1.0))
            gradients = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            seen.append(momentum(model))

    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")
        held = len(tf.train.list_variables(path))
        live()
        checkpoint.restore(path)
    live()
    return seen, held


with_slots, without_slots = through_a_rollback(True), through_a_rollback(False)
LIVES = {"slots saved": with_slots[0], "saved before there were slots": without_slots[0]}
figures.timeline(LIVES, STEPS + 1, "rollback", "largest momentum")

# %% [markdown]
# ## The fix
#
# Build the optimizer before the first save, so that the file holds its slot variables, as zeros. Before, where three steps from
# the start lead to 0.439:
#
# ```python
# import tensorflow as tf
#
# weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1, momentum=0.9)
# checkpoint = tf.train.Checkpoint(weight=weight, optimizer=optimizer)
# path = checkpoint.save("checkpoints/start")
# for step in range(6):
#     if step == 3:
#         checkpoint.restore(path)  # back to the start
#     optimizer.apply_gradients([(tf.constant(1.0), weight)])
# print(f"{weight.numpy():.3f}")  # -0.222
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1, momentum=0.9)
# optimizer.build([weight])  # model.trainable_variables, for a model
# checkpoint = tf.train.Checkpoint(weight=weight, optimizer=optimizer)
# path = checkpoint.save("checkpoints/start")
# for step in range(6):
#     if step == 3:
#         checkpoint.restore(path).assert_consumed()
#     optimizer.apply_gradients([(tf.constant(1.0), weight)])
# print(f"{weight.numpy():.3f}")  # 0.439
# ```
#
# In the first block the assert would have raised. `checks.assert_restored(status)`, with what `restore` returned, raises too,
# and `print(pasted(checks.assert_restored))` prints it with all that it needs (`from strategy_clinic import pasted`).


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        make_slots(strategy, model)  # repair
        path = checkpoint.save(f"{folder}/start")
        first = train(strategy, model)
        status = checkpoint.restore(path)
    checks.assert_restored(status)
    return Proof("training after the rollback repeats the first", train(strategy, model), first)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage"), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy and the number of devices. The failure stays: under every strategy an optimizer creates its slot variables
# late.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "Why am I getting a Checkpointing error with apply_gradients()?" ends with an anecdote:
#
# > i once spent two days trying to figure out why my model was training but not saving correctly, turns out i was saving the
# > checkpoint *before* applying the gradients, i was saving a completely different model.
#
# It is right that another model is saved, one without the step that follows. The run adds that the optimizer in that file lacks
# its slot variables, and that these keep their values through a rollback.

# %% tags=["claims"]
alone = build_strategy(session.setup.but(strategy="default", devices=1))
model, checkpoint = start(alone)
with tempfile.TemporaryDirectory() as folder:
    untrained = model.get_weights()
    path = checkpoint.save(f"{folder}/start")
    first = train(alone, model)
    trained = model.get_weights()
    checkpoint.restore(path)
    restored = model.get_weights()
    second = train(alone, model)

session.judges(
    {
        "001-C11": [
            not np.allclose(trained[0], restored[0]),
            np.array_equal(untrained[0], restored[0]),
            without_slots[1] == with_slots[1] - len(model.trainable_variables),
            not np.allclose(first[0], second[0]),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script tries two learning rates from the same start. The second try should end as if the first had never been. It does
# not. Add one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")
        for rate in (0.05, 0.01):
            checkpoint.restore(path)
            model.optimizer.learning_rate = rate
            end = train(strategy, model)
    alone, _ = start(strategy)
    alone.optimizer.learning_rate = 0.01
    return Proof("the second try ends where it ends alone", end, train(strategy, alone))


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        make_slots(strategy, model)
        path = checkpoint.save(f"{folder}/start")
        for rate in (0.05, 0.01):
            checkpoint.restore(path)
            model.optimizer.learning_rate = rate
            end = train(strategy, model)
    alone, _ = start(strategy)
    alone.optimizer.learning_rate = 0.01
    return Proof("the second try ends where it ends alone", end, train(strategy, alone))


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): save formats that leave out the optimizer's variables
#   altogether.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a variable that is in no checkpoint, however late you save.
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a restore that restores nothing, and which assert sees what.
