# %% [markdown]
# # FM09. A checkpoint saved before the first step has no optimizer slots
#
# You save the model as it is at the start, train, roll back to that start and train again on the same data. The second training
# is not the first one.
#
# *Silent. Every strategy and both Keras generations have it. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm09",
    slug="optimizer_slots_missing",
    title="A checkpoint saved before the first step has no optimizer slots",
    sees="after a rollback to the first checkpoint the same training gives other weights",
    fix="call `optimizer.build(model.trainable_variables)` before the first save, and assert every restore",
    document="001",
    switches=(),
    symptoms=(Symptom("SilentFailure", r"restore left variables as they were"),),
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
import helpers

clinic = helpers.open("fm09", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The first checkpoint is taken before the first step, so that there is a clean start to come back to. Model and optimizer are
# both in it, so you believe that restoring it undoes all that training did.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures

STEPS = 4


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    return model


def batch(step):
    return np.random.default_rng(step).normal(size=(8, 3)).astype("float32")


def make_slots(strategy, model):
    """What an optimizer does in its first step: a momentum for every weight. A second call changes nothing."""
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)


def state(model):
    """Weights, momenta, learning rate and the count of steps."""
    kept = [*model.variables, *model.optimizer.variables]
    return [tf.convert_to_tensor(checks.variable_of(variable)) for variable in kept]


# %%
def start(strategy):
    with strategy.scope():
        model = make_model()
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def train(strategy, model):
    """The same steps on the same data, every time; returns where they lead."""
    make_slots(strategy, model)

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for number in range(STEPS):
        strategy.run(step, args=(tf.constant(batch(number)),))
    return state(model)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")  # guilty: the optimizer has no slots yet
        first = train(strategy, model)
        status = checkpoint.restore(path)
    checks.assert_restored(status)
    return Proof("training after the rollback repeats the first", train(strategy, model), first)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# An optimizer keeps slots, such as one momentum per weight. It cannot make them before it knows the weights, so it makes them
# in the first step. A checkpoint from before that step holds the learning rate, a step count of zero, and no slot.
#
# `restore` then writes what the file has over what the objects have, and leaves the rest alone. Weights and step count go back
# to the start, the momenta keep what training put into them, and the second training sets out with the impetus of the first. In
# a new process nothing is wrong: there the slots are made anew, as zeros.
#
# The picture follows one momentum through a rollback. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).


# %%
def momentum(model):
    """The largest momentum; before the first step there is none."""
    slots = [np.abs(value).max() for value in state(model)[len(model.variables) + 2 :]]
    return float(max(slots, default=0.0))


def through_a_rollback(slots_first):
    """One momentum over a training, a rollback and the same training again; and what the file holds."""
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    tf.keras.utils.set_random_seed(7)
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
    seen.append(momentum(model))
    live()
    return seen, held


with_slots, without_slots = through_a_rollback(True), through_a_rollback(False)
figures.timeline(
    {"slots saved": with_slots[0], "saved before there were slots": without_slots[0]},
    STEPS + 1,
    "rollback",
    "largest momentum",
)

# %% [markdown]
# ## The fix
#
# Build the optimizer before the first save: the momenta are then in the file, as zeros. After `restore`, call
# `checks.assert_restored(status)`, or TensorFlow's own `status.assert_existing_objects_matched()`: it is the only thing that
# tells.


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


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(devices=4), two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (one, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# No strategy and no number of devices makes the failure go away: an optimizer makes its slots late under all of them.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 ends with an anecdote: two days lost because the checkpoint was saved before the gradients were applied. It is
# right that another model is saved, one without the step that was just taken. It does not say that the optimizer in that file
# is incomplete, which is what outlives the rollback.

# %% tags=["claims"]
alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
model, checkpoint = start(alone)
with tempfile.TemporaryDirectory() as folder:
    untrained = model.get_weights()
    path = checkpoint.save(f"{folder}/start")
    first = train(alone, model)
    trained = model.get_weights()
    checkpoint.restore(path)
    restored = model.get_weights()
    second = train(alone, model)

clinic.judges(
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
# Here the checkpoint is already written, too early, and cannot be saved again. Roll back to it in such a way that training
# repeats.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")
        first = train(strategy, model)
        checkpoint.restore(path)
    return Proof("training after the rollback repeats the first", train(strategy, model), first)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    model, checkpoint = start(strategy)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/start")
        first = train(strategy, model)
        model, checkpoint = start(strategy)
        checkpoint.restore(path).assert_existing_objects_matched()
    return Proof("training after the rollback repeats the first", train(strategy, model), first)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a variable that is in no checkpoint, however late you save.
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a restore that restores nothing at all, just as quietly.
