# %% [markdown]
# # FM34. A loss that the tape has not seen has no gradients
#
# The loss is a number, and the right one. Then `apply_gradients` says that no gradients were provided for any variable: every
# gradient is `None`.
#
# ```text
# Keras 3  ValueError: No gradients provided for any variable.
# Keras 2  ValueError: No gradients provided for any variable: … Provided `grads_and_vars` is ((None, …
# ```
#
# *Loud, and the same under every strategy. Keras 2 prints all variables after the message. Switch: `keras`. From document 001,
# "Why am I getting a Checkpointing error with apply_gradients()?"*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm34",
    slug="no_gradients",
    title="A loss that the tape has not seen has no gradients",
    sees="`apply_gradients` says that no gradients were provided for any variable",
    fix="compute all between weights and loss inside `with tf.GradientTape()`, with differentiable operations",
    document="001",
    switches=("keras",),
    symptoms=(Symptom("ValueError", r"No gradients provided for any variable"),),
    claims=(),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm34", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The loss exists in NumPy and is well tested. `tf.numpy_function` makes it an operation that a traced step can call, and the step
# gives the right number. You believe that TensorFlow can differentiate whatever it can compute.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

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

    def replica_step(data):
        gradients = gradients_of(model, data)
        shares = [
            each if each is None else each / strategy.num_replicas_in_sync for each in gradients
        ]
        model.optimizer.apply_gradients(zip(shares, model.trainable_variables))

    @tf.function
    def train_step(data):
        strategy.run(replica_step, args=(data,))

    for number in range(STEPS):
        train_step(tf.constant(batch(number)))


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
            loss = tf.numpy_function(in_numpy, [outputs], tf.float32)  # guilty: NumPy computes it
        return tape.gradient(loss, model.trainable_variables)

    train(strategy, model, gradients_of)
    return Proof("training goes where the gradient on paper leads", model.get_weights(), [wanted])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A tape records operations while it is open. For each operation TensorFlow knows its derivative. `gradient` follows the record
# from the loss back to the weights and applies the chain rule. Where an operation is missing, or has no derivative, the path
# ends, and the gradient is `None`: not zero, but not connected. The loss itself needs no record, so its value is right.
#
# A path ends in three ways. The model was called before the tape was open. The computation left TensorFlow, through `.numpy()` or
# `tf.numpy_function`. Or an operation has no derivative, such as `tf.argmax`, or stops it, as `tf.stop_gradient` does. A
# `tf.py_function` keeps the path: the tape records the operations inside it.
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
# Compute all between weights and loss inside the tape, with TensorFlow's operations. Before:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# weight = tf.Variable(1.0)
# with tf.GradientTape() as tape:
#     loss = tf.numpy_function(np.square, [weight], tf.float32)
# gradients = tape.gradient(loss, [weight])
# tf.keras.optimizers.SGD(0.25).apply_gradients(zip(gradients, [weight]))  # ValueError: No gradients provided for any variable
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# weight = tf.Variable(1.0)
# with tf.GradientTape() as tape:
#     loss = tf.square(weight)
# gradients = tape.gradient(loss, [weight])
# tf.keras.optimizers.SGD(0.25).apply_gradients(zip(gradients, [weight]))
# print(weight.numpy())  # 0.5
# ```
#
# Where a part must stay in NumPy, `tf.custom_gradient` lets you give its derivative yourself.


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


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch Keras: Keras 2 prints all variables after the message. Then switch the strategy: the outcome stays the same, because the
# tape is the same.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001, "Why am I getting a Checkpointing error with apply_gradients()?", warns of a loss that leaves TensorFlow:
#
# > if the my_loss_calculation is not using a `tf.*` operations and you are working with numpy arrays, this can also break the
# > graph and cause an error since not all the operations can be traced.
#
# The error exists: it is the one on this page, and the optimizer raises it before any weight has changed. Whether such a loss
# also breaks checkpoints, as the document says, is judged in [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb).

# %% [markdown]
# ## Exercise
#
# Here all operations are TensorFlow's, and every gradient is `None` all the same. Move one line.


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


session.exercise(attempt)


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


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): NumPy in a traced step that fails before any gradient.
# - [fm10 variable_unknown_to_optimizer](fm10_variable_unknown_to_optimizer.ipynb): gradients that the optimizer refuses.
# - [fm13 gradients_inconsistent](fm13_gradients_inconsistent.ipynb): `None` for some of the variables.
