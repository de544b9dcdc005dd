# %% [markdown]
# # FM34. A loss that the tape has not seen has no gradients
#
# The loss is a number, and the right one. Then `apply_gradients` says that no gradients were provided for any variable: every
# gradient is `None`.
#
# ```text
# Keras 3  ValueError: No gradients provided for any variable.
# Keras 2  ValueError: No gradients provided for any variable: (['dense_15/kernel:0'],). Provided `grads_and_vars` is ((None, <tf.Variable 'dense_15/kernel:0' shape=(1, 1) dtype=float32>),).
# ```
#
# *Loud, and the same under every strategy. Keras 2 prints all variables after the message. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm34",
    slug="no_gradients",
    title="A loss that the tape has not seen has no gradients",
    sees="`apply_gradients` says that no gradients were provided for any variable",
    fix="compute all between weights and loss inside `with tf.GradientTape()`, with differentiable operations",
    document="001",
    switches=("keras",),
    symptoms=(Symptom("ValueError", r"No gradients provided for any variable"),),
    claims=(
        Claim("001-C9", "a loss that is not made of TensorFlow breaks checkpointing", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm34", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The loss exists in NumPy and is well tested. `tf.numpy_function` makes it an operation that a traced step can call, and the step
# gives the right number. You believe that what TensorFlow can compute it can differentiate.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures

STEPS, RATE = 3, 0.1


def make_model():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False)]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer=tf.keras.optimizers.SGD(RATE), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


def batch(step):
    return np.random.default_rng(step).normal(size=(8, 1)).astype("float32")


def in_numpy(outputs):
    return np.mean(np.square(outputs - 1.0))


def train(strategy, model, gradients_of):
    """Some steps; every replica has the same batch, so that all of them together take one step of the whole."""

    @tf.function
    def step(data):
        gradients = gradients_of(model, data)
        shares = [
            each if each is None else each / strategy.num_replicas_in_sync for each in gradients
        ]
        model.optimizer.apply_gradients(zip(shares, model.trainable_variables))

    for number in range(STEPS):
        strategy.run(step, args=(tf.constant(batch(number)),))


# %%
def on_paper(weight):
    """The same steps by hand: the loss is the mean of (weight * data - 1) squared."""
    for number in range(STEPS):
        data = batch(number)
        weight = weight - RATE * np.mean(2 * data * (weight * data - 1.0))
    return weight


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    wanted = on_paper(model.get_weights()[0])

    def gradients_of(model, data):
        with tf.GradientTape() as tape:
            outputs = model(data)
            loss = tf.numpy_function(in_numpy, [outputs], tf.float32)  # guilty: a closed box
        return tape.gradient(loss, model.trainable_variables)

    train(strategy, model, gradients_of)
    return Proof("training goes where the gradient on paper leads", model.get_weights(), [wanted])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A tape writes down operations while it is open, and knows for each how a change of the result goes back to its inputs.
# `gradient` walks that record from the loss to the weights. Where the record has a gap the walk ends, and the answer is `None`:
# not zero, but no way from here to there. The loss itself needs no record, so it is right all the same.
#
# There are gaps of three kinds: what ran before the tape was open; what left TensorFlow, through `.numpy()` or a
# `numpy_function`; and what has no derivative, such as `argmax`. A `py_function` is no gap: its tensors are on the tape.
#
# The picture computes one loss in six ways. See
# [the guide to `GradientTape`](https://www.tensorflow.org/guide/autodiff#getting_a_gradient_of_none).

# %%
DATA = tf.constant(batch(0))


def mean_square(outputs):
    return tf.reduce_mean(tf.square(outputs - 1.0))


def before_the_tape(model, tape):
    with tape.stop_recording():
        outputs = model(DATA)
    return mean_square(outputs)


WAYS = {
    "all inside the tape": lambda model, tape: mean_square(model(DATA)),
    "tf.py_function": lambda model, tape: tf.py_function(mean_square, [model(DATA)], tf.float32),
    "model called before the tape": before_the_tape,
    "tf.numpy_function": lambda model, tape: tf.numpy_function(in_numpy, [model(DATA)], tf.float32),
    ".numpy()": lambda model, tape: tf.constant(in_numpy(model(DATA).numpy())),
    "tf.stop_gradient": lambda model, tape: mean_square(tf.stop_gradient(model(DATA))),
}


def right_and_differentiable(model, way):
    with tf.GradientTape() as tape:
        loss = way(model, tape)
    gradient = tape.gradient(loss, model.trainable_variables)[0]
    return [np.isclose(float(loss), in_numpy(np.asarray(model(DATA)))), gradient is not None]


model = make_model()
FOUND = {name: right_and_differentiable(model, way) for name, way in WAYS.items()}
figures.grid(FOUND, ["right loss", "gradient"], "yes", "no")

# %% [markdown]
# ## The fix
#
# Keep everything from the weights to the loss inside the tape and inside TensorFlow. Where that is impossible,
# `tf.custom_gradient` lets you give the derivative yourself.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    wanted = on_paper(model.get_weights()[0])

    def gradients_of(model, data):
        with tf.GradientTape() as tape:
            outputs = model(data)
            loss = tf.reduce_mean(tf.square(outputs - 1.0))  # repair
        return tape.gradient(loss, model.trainable_variables)

    train(strategy, model, gradients_of)
    return Proof("training goes where the gradient on paper leads", model.get_weights(), [wanted])


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
# Every strategy asks the same tape. On Keras 2 the message goes on to print all variables, which is a lot to scroll past under a
# strategy with many replicas.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 counts such a loss among the causes of broken checkpoints. The step is refused before it changes anything, and the
# checkpoint is as good as before. Where only one term of the loss is a closed box nothing is refused: the model learns without
# that term, and its checkpoint brings back just what it learned.


# %% tags=["claims"]
def checkpoint_breaks(loss_of):
    """Trains as far as that goes, saves, and asks whether a new model gets other weights."""
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    model, restored = make_model(), make_model()

    def gradients_of(model, data):
        with tf.GradientTape() as tape:
            loss = loss_of(model(data))
        return tape.gradient(loss, model.trainable_variables)

    with contextlib.suppress(ValueError):
        train(alone, model, gradients_of)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        tf.train.Checkpoint(model=restored).restore(path).assert_consumed()
    return not np.array_equal(model.get_weights()[0], restored.get_weights()[0])


def boxed(outputs):
    return tf.numpy_function(in_numpy, [outputs], tf.float32)


clinic.judges(
    {
        "001-C9": [
            checkpoint_breaks(boxed),
            checkpoint_breaks(lambda outputs: mean_square(outputs) + boxed(outputs)),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# All operations are TensorFlow's here, and still there is no gradient. Move one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    wanted = on_paper(model.get_weights()[0])

    def gradients_of(model, data):
        outputs = model(data)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(outputs - 1.0))
        return tape.gradient(loss, model.trainable_variables)

    train(strategy, model, gradients_of)
    return Proof("training goes where the gradient on paper leads", model.get_weights(), [wanted])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    wanted = on_paper(model.get_weights()[0])

    def gradients_of(model, data):
        with tf.GradientTape() as tape:
            outputs = model(data)
            loss = tf.reduce_mean(tf.square(outputs - 1.0))
        return tape.gradient(loss, model.trainable_variables)

    train(strategy, model, gradients_of)
    return Proof("training goes where the gradient on paper leads", model.get_weights(), [wanted])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): NumPy in a traced step that does not get as far as a gradient.
# - [fm10 variable_unknown_to_optimizer](fm10_variable_unknown_to_optimizer.ipynb): gradients that the optimizer refuses.
