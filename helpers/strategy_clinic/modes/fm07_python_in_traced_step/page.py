# %% [markdown]
# # FM07. NumPy and Python in a traced step fail, or run once per trace
#
# A training step gets a `@tf.function` for speed, and the NumPy in its loss raises. The NumPy that draws its noise raises
# nothing: it draws one number, and every later step uses that number.
#
# ```text
# NotImplementedError: Cannot convert a symbolic tf.Tensor ( … ) to a numpy array. This error may indicate that
#   … you're trying to pass a Tensor to a NumPy call, which is not supported.
# ```
#
# *Loud in the broken script, silent in the exercise. No strategy and no Keras generation changes it. From "Why am I getting a
# Checkpointing error with apply_gradients()?" (document 001).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm07",
    slug="python_in_traced_step",
    title="NumPy and Python in a traced step fail, or run once per trace",
    sees="NumPy in a step under `tf.function` cannot convert a symbolic tensor, or freezes at one value",
    fix="use `tf.*` for all that depends on tensors or must change from step to step",
    document="001",
    switches=(),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"trying to pass a Tensor to a NumPy call, which is not supported",
        ),
    ),
    claims=(
        Claim("001-C8", "without `tf.function` checkpoints break", "false"),
        Claim("001-C9", "a loss that is not made of TensorFlow breaks checkpointing", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm07", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# `np.mean` of a tensor is a number, as any notebook cell shows. The step is a Python function, so you believe that Python runs
# it in every step.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

STEPS = 3


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.01)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def batch(step):
    return np.random.default_rng(step).normal(size=(8, 3)).astype("float32")


def train(strategy, model, loss_of):
    def step(data):
        with tf.GradientTape() as tape:
            loss = loss_of(model(data)) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step(data):
        strategy.run(step, args=(data,))

    for number in range(STEPS):
        train_step(tf.constant(batch(number)))
    return model.get_weights()


def train_eagerly(model, loss_of):
    """The same steps without a strategy, and with tf.function switched off."""
    tf.config.run_functions_eagerly(True)
    try:
        return train(tf.distribute.get_strategy(), model, loss_of)
    finally:
        tf.config.run_functions_eagerly(False)


def mean_square(outputs):
    return tf.reduce_mean(tf.square(outputs - 1.0))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def loss_of(outputs):
        return np.mean(np.square(outputs - 1.0))  # guilty: asks a tensor without a value for one

    traced = train(strategy, model, loss_of)
    eager = train_eagerly(make_model(), mean_square)
    return Proof("traced steps lead where eager ones do", traced, eager)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `tf.function` traces: it runs the Python of the step once for each new input signature, and records the TensorFlow operations
# in a graph. Later calls with that signature run the graph, and no Python.
#
# During the trace the arguments are symbolic tensors, which have a shape and a type and no value. A `tf.*` operation accepts
# them. NumPy asks for the value, and that raises.
#
# NumPy that is given no tensor does not raise. `np.random.normal()` and `counter += 1` run once per trace. Their result is a
# constant of the graph, and all later calls use that constant.
#
# The picture calls each function three times, each time with another batch. See [the guide to
# `tf.function`](https://www.tensorflow.org/guide/function#executing_python_side_effects).

# %%
calls = {"made": 0}


def counter():
    calls["made"] += 1
    return tf.constant(float(calls["made"]))


INSIDE = {
    "tf.reduce_mean(data)": lambda data: tf.reduce_mean(data),
    "np.mean(data)": lambda data: tf.constant(np.mean(data)),
    "data.numpy().mean()": lambda data: tf.constant(data.numpy().mean()),
    "tf.random.normal(())": lambda data: tf.random.normal(()),
    "np.random.normal()": lambda data: tf.constant(np.random.normal()),
    "counter += 1": lambda data: counter(),
}


def three_calls(function):
    """How many values come of three calls, if any do."""
    try:
        values = {float(function(tf.constant(batch(number)))) for number in range(3)}
    except (NotImplementedError, AttributeError):
        return "raises"
    return "1 value" if len(values) == 1 else f"{len(values)} values"


SEEN = {
    name: [three_calls(function), three_calls(tf.function(function))]
    for name, function in INSIDE.items()
}
figures.words(SEEN, ["eager", "tf.function"], ["raises", "1 value"])

# %% [markdown]
# ## The fix
#
# Write the step in `tf.*`, or on Keras 3 in `keras.ops`, where most functions of NumPy have a counterpart. Before:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# @tf.function
# def loss_of(outputs):
#     return np.mean(np.square(outputs - 1.0))
#
# loss_of(tf.constant([1.0, 3.0]))  # NotImplementedError: trying to pass a Tensor to a NumPy call, which is not supported
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# @tf.function
# def loss_of(outputs):
#     return tf.reduce_mean(tf.square(outputs - 1.0))
#
# print(loss_of(tf.constant([1.0, 3.0])).numpy())  # 2.0
# ```
#
# What must stay NumPy belongs outside of the step. Pass its result to the step as a tensor: for a tensor of the same shape and
# type `tf.function` does not trace again. A Python number is traced again for each new value.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def loss_of(outputs):
        return tf.reduce_mean(tf.square(outputs - 1.0))  # repair

    traced = train(strategy, model, loss_of)
    eager = train_eagerly(make_model(), mean_square)
    return Proof("traced steps lead where eager ones do", traced, eager)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage"), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch to any strategy, and to the other Keras generation. The failure stays: tracing belongs to TensorFlow.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "Why am I getting a Checkpointing error with apply_gradients()?" says:
#
# > **use `tf.function`** this is critical for many tensorflow features, and checkpointing is one of them.
#
# > # this loss function breaks checkpointing
#
# > if the my_loss_calculation is not using a `tf.*` operations and you are working with numpy arrays, this can also break the
# > graph and cause an error since not all the operations can be traced.
#
# NumPy does raise in a traced step, as the last sentence says. Checkpoints are not concerned. A checkpoint holds variables and
# no steps. The cell below saves after eager steps, after steps with Python in them, and after a step that raised. Each
# checkpoint brings all weights back.


# %% tags=["claims"]
def checkpoint_breaks(train_it):
    """Trains as far as that goes, saves, and asks whether a new model gets other weights."""
    model, restored = make_model(), make_model()
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    with contextlib.suppress(NotImplementedError):
        train_it(model)
    with tempfile.TemporaryDirectory() as folder:
        saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        path = saved.save(f"{folder}/training")
        checkpoint = tf.train.Checkpoint(model=restored, optimizer=restored.optimizer)
        checkpoint.restore(path).assert_consumed()
    pairs = zip(model.get_weights(), restored.get_weights())
    return not all(np.array_equal(*pair) for pair in pairs)


def in_numpy(outputs):
    return np.mean(np.square(outputs - 1.0))


def in_python(outputs):
    return tf.py_function(mean_square, [outputs], tf.float32)


alone = tf.distribute.get_strategy()
session.judges(
    {
        "001-C8": [checkpoint_breaks(lambda model: train_eagerly(model, mean_square))],
        "001-C9": [
            checkpoint_breaks(lambda model: train(alone, model, in_numpy)),
            checkpoint_breaks(lambda model: train(alone, model, in_python)),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# Each step should add fresh noise to its data. Nothing raises, and all steps add the same noise. Make the noise fresh, and keep
# the `tf.function`.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def step(data):
        noise = np.random.normal(scale=0.1)
        return tf.reduce_mean(data + noise) - tf.reduce_mean(data)

    @tf.function
    def noise_of(data):
        return strategy.experimental_local_results(strategy.run(step, args=(data,)))[0]

    drawn = [float(noise_of(tf.constant(batch(0)))) for _ in range(STEPS)]
    return Proof("every step draws its own noise", [len(set(drawn))], [STEPS])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def step(data):
        noise = tf.random.normal((), stddev=0.1)
        return tf.reduce_mean(data + noise) - tf.reduce_mean(data)

    @tf.function
    def noise_of(data):
        return strategy.experimental_local_results(strategy.run(step, args=(data,)))[0]

    drawn = [float(noise_of(tf.constant(batch(0)))) for _ in range(STEPS)]
    return Proof("every step draws its own noise", [len(set(drawn))], [STEPS])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): the same error, where the step reads the weights as numbers.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): NumPy or Python between the weights and the loss, and the tape records nothing.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): the strategy that accepts traced steps only.
