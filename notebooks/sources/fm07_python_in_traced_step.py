# %% [markdown]
# # FM07. NumPy and Python in a traced step fail, or run only once
#
# A training step that worked for weeks gets a `@tf.function` for speed, and the NumPy in its loss raises. The NumPy that makes
# its noise does not raise: it draws one number and uses it for ever.
#
# ```text
# NotImplementedError: Cannot convert a symbolic tf.Tensor (sub:0) to a numpy array. This error may indicate that you're trying to pass a Tensor to a NumPy call, which is not supported.
# ```
#
# *Loud in the broken script, silent in the exercise. No strategy and no Keras generation changes it. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm07",
    slug="python_in_traced_step",
    title="NumPy and Python in a traced step fail, or run only once",
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
import helpers

clinic = helpers.open("fm07", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# `np.mean` of a tensor gives a number, as you can see in any cell. The step is a Python function, so you believe that Python
# runs it, line by line, in every step.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, runner

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


def train(strategy, model, loss_of, trace):
    """Some steps; `trace` is tf.function, or something that leaves the step as it is."""

    def step(data):
        with tf.GradientTape() as tape:
            loss = loss_of(model(data))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    prepared = trace(step)
    for number in range(STEPS):
        runner(strategy)(prepared, args=(tf.constant(batch(number)),))


# %%
def eager(function):
    return function


def trained(strategy, loss_of, trace):
    with strategy.scope():
        model = make_model()
    train(strategy, model, loss_of, trace)
    return model.get_weights()


def mean_square(outputs):
    return tf.reduce_mean(tf.square(outputs - 1.0))


@experiment
def broken(setup):
    strategy = build_strategy(setup)

    def loss_of(outputs):
        return np.mean(np.square(outputs - 1.0))  # guilty: asks a tensor without a value for one

    traced = trained(strategy, loss_of, tf.function)
    return Proof(
        "traced steps lead where eager ones do", traced, trained(strategy, mean_square, eager)
    )


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Under `tf.function` Python runs your step once, not to compute it but to write it down. What it meets are symbolic tensors,
# names of values that will exist later. A `tf.*` operation on such a tensor adds a line to the graph. NumPy wants the value,
# and there is none: so it raises.
#
# NumPy that meets no tensor does not raise. `np.random.normal()` and `counter += 1` run while the step is written down, give one
# number, and that number becomes a constant of the graph. Every later step uses it.
#
# The picture calls each function three times and asks whether it gives three values. See
# [the guide to `tf.function`](https://www.tensorflow.org/guide/function#executing_python_side_effects).

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


def three_values(function, trace):
    """Does the function run, and does it give another value in each of three calls?"""
    prepared = trace(function)
    try:
        values = [float(prepared(tf.constant(batch(number)))) for number in range(3)]
    except (NotImplementedError, AttributeError):
        return [False, False]
    return [True, len(set(values)) == 3]


SEEN = {
    name: [*three_values(function, eager), *three_values(function, tf.function)]
    for name, function in INSIDE.items()
}
figures.grid(SEEN, ["eager: runs", "3 values", "traced: runs", "3 values"], "yes", "no")

# %% [markdown]
# ## The fix
#
# Write the step in `tf.*`; nearly every function of NumPy has its twin there. What must stay NumPy belongs outside the step, as
# an argument that is a tensor.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)

    def loss_of(outputs):
        return tf.reduce_mean(tf.square(outputs - 1.0))  # repair

    traced = trained(strategy, loss_of, tf.function)
    return Proof(
        "traced steps lead where eager ones do", traced, trained(strategy, mean_square, eager)
    )


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (one, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Nothing that you can switch here helps: every strategy traces the step, and both Keras generations leave tracing to TensorFlow.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 calls `tf.function` key to checkpoints and warns that a loss in NumPy breaks them. A checkpoint holds variables
# and never sees a step: eager, traced, half in Python or failed half-way, the weights that are there come back.


# %% tags=["claims"]
def checkpoint_breaks(loss_of, trace):
    """Trains as far as that goes, saves, and asks whether a new model gets other weights."""
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    model, restored = make_model(), make_model()
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    with contextlib.suppress(NotImplementedError):
        train(alone, model, loss_of, trace)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(
            f"{folder}/training"
        )
        checkpoint = tf.train.Checkpoint(model=restored, optimizer=restored.optimizer)
        checkpoint.restore(path).assert_consumed()
    pairs = zip(model.get_weights(), restored.get_weights())
    return not all(np.array_equal(*pair) for pair in pairs)


def in_numpy(outputs):
    return np.mean(np.square(outputs - 1.0))


def in_python(outputs):
    return tf.py_function(mean_square, [outputs], tf.float32)


clinic.judges(
    {
        "001-C8": [checkpoint_breaks(mean_square, eager)],
        "001-C9": [
            checkpoint_breaks(in_numpy, tf.function),
            checkpoint_breaks(in_python, tf.function),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# Each step should blur its data with fresh noise. Nothing raises. Make the noise fresh, and keep the `tf.function`.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    @tf.function
    def step(data):
        noise = np.random.normal(scale=0.1)
        return tf.reduce_mean(data + noise) - tf.reduce_mean(data)

    data = tf.constant(batch(0))
    runs = [strategy.run(step, args=(data,)) for _ in range(STEPS)]
    drawn = [float(strategy.experimental_local_results(each)[0]) for each in runs]
    return Proof("every step draws its own noise", [len(set(drawn))], [STEPS])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    @tf.function
    def step(data):
        noise = tf.random.normal((), stddev=0.1)
        return tf.reduce_mean(data + noise) - tf.reduce_mean(data)

    data = tf.constant(batch(0))
    runs = [strategy.run(step, args=(data,)) for _ in range(STEPS)]
    drawn = [float(strategy.experimental_local_results(each)[0]) for each in runs]
    return Proof("every step draws its own noise", [len(set(drawn))], [STEPS])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): the same, when what is read are the weights.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): NumPy or Python between the weights and the loss, and the tape sees nothing.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): the strategy that takes traced steps only.
