# %% [markdown]
# # FM43. A step that gets Python numbers is traced again in every call
#
# Every step of a training loop takes as long as the first, and memory grows until it runs out. The results are right. TensorFlow
# logs two warnings, and then no more.
#
# ```text
# WARNING:tensorflow:5 out of the last 5 calls to <function train_step at …> triggered tf.function retracing. Tracing is
# expensive and the excessive number of tracings could be due to (1) creating @tf.function repeatedly in a loop,
# (2) passing tensors with different shapes, (3) passing Python objects instead of tensors. …
# ```
#
# *Silent under every strategy and without one. A strategy makes it dearer: each trace runs the step once per replica, and on a
# TPU each trace is compiled. Keras plays no part. The `TPUStrategy` reference (003) asks for a `tf.function`, and not where.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm43",
    slug="retracing_every_step",
    title="A step that gets Python numbers is traced again in every call",
    sees="every step is as slow as the first, and memory grows; a warning said `triggered tf.function retracing`",
    fix="give the step tensors (`tf.constant(rate)`), and make one `tf.function` before the loop",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"the step was traced once, and has trained as by hand"),),
    claims=(),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm43", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The learning rate falls from step to step. Python computes it, and the loop passes it to the step. You believe that a
# `tf.function` is compiled once, and that a number is only a number.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

STEPS = 5


def rate_of(number):
    return 0.1 / (1 + number)


def begin(strategy):
    """A weight in scope, and a traced step that moves it by a rate; the strategy adds up what the replicas do."""
    with strategy.scope():
        weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

    def step(rate):
        weight.assign_add(rate)

    @tf.function
    def train_step(rate):
        strategy.run(step, args=(rate,))

    return weight, train_step


def proof(train_step, weight):
    """How often the step was traced, and the weight beside the sum of all rates."""
    got = [train_step.experimental_get_tracing_count(), weight.numpy()]
    want = [1, sum(rate_of(number) for number in range(STEPS))]
    return Proof("the step was traced once, and has trained as by hand", got, want, 1e-5)


# %%
@experiment
def broken(setup):
    weight, train_step = begin(build_strategy(setup))
    for number in range(STEPS):
        rate = rate_of(number)  # guilty: a Python number is part of the trace
        train_step(rate)
    return proof(train_step, weight)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `tf.function` makes a graph for each *signature* of its arguments, and keeps it. Of a tensor the signature is its dtype and
# shape, so the next tensor finds the graph again. Of a Python number it is the value: each new number makes a new graph. To make
# it, Python runs the step once per replica. Old graphs stay in memory as long as the function does.
#
# A new `tf.function` has no graphs. One that is made in the loop traces in every call. So does a `tf.function` that is given
# a Python function made in the loop: a function's signature is its identity. A tensor of another shape is another signature.
#
# TensorFlow warns after five traces, twice for each function. Strategies do not change the count. In one measurement, two dense
# layers and Adam on two virtual CPUs, a call that traced took over 300 ms and kept about 3 MB. One that did not took 2 ms.
#
# The picture counts the traces of five calls. See
# [the guide to `tf.function`](https://www.tensorflow.org/guide/function#rules_of_tracing).

# %%
GIVEN = {
    "a tensor": lambda run, step, number: run(step, (tf.constant(rate_of(number)),)),
    "a NumPy number": lambda run, step, number: run(step, (np.float32(rate_of(number)),)),
    "a Python number": lambda run, step, number: run(step, (rate_of(number),)),
    "a list of Python numbers": lambda run, step, number: run(step, ([rate_of(number), 1.0],)),
    "tensors of another shape": lambda run, step, number: run(step, (tf.ones(number + 1),)),
    "a function made in the loop": lambda run, step, number: run(lambda: step(number)),
    "a new tf.function": lambda run, step, number: tf.function(run.python_function)(step, ()),
}


def traces_of(setup, call):
    """How often Python runs a step in so many calls, by one replica of a strategy."""
    strategy, traces = build_strategy(setup), []

    def step(*given):
        traces.append(given)

    run = tf.function(strategy.run)
    for number in range(STEPS):
        call(run, step, number)
    return str(len(traces) // strategy.num_replicas_in_sync)


two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
FOUND = {name: [traces_of(each, call) for each in (alone, two)] for name, call in GIVEN.items()}
figures.words(FOUND, ["no strategy", "mirrored x2"], str(STEPS), "Traces in five calls")

# %% [markdown]
# ## The fix
#
# Give the step tensors. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# @tf.function
# def train_step(rate):
#     return strategy.run(tf.square, args=(rate,))
#
# for number in range(5):
#     train_step(0.1 / (1 + number))
# print(train_step.experimental_get_tracing_count())  # 5
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# @tf.function
# def train_step(rate):
#     return strategy.run(tf.square, args=(rate,))
#
# for number in range(5):
#     train_step(tf.constant(0.1 / (1 + number)))
# print(train_step.experimental_get_tracing_count())  # 1
# ```
#
# Write `@tf.function` once, above a step that stands before the loop. Do not write `tf.function(strategy.run)(step)` in the
# loop: it makes a new function in each call. For batches of changing length give `tf.function` the option
# `reduce_retracing=True`, or an `input_signature`, or drop the last batch.
#
# To find the mistake in your program, print `train_step.experimental_get_tracing_count()` after some steps. It should
# stop growing after the first epoch.


# %%
@experiment
def fixed(setup):
    weight, train_step = begin(build_strategy(setup))
    for number in range(STEPS):
        rate = tf.constant(rate_of(number))  # repair: of a tensor, only dtype and shape are
        train_step(rate)
    return proof(train_step, weight)


session.proves(fixed)

# %%
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(strategy="tpu_traced", devices=8), two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose any strategy: the count is the same. What differs is what a trace costs: eight devices run the step eight times in
# Python, and a TPU compiles each graph.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) says:
#
# > Note that TPUStrategy doesn't support pure eager execution, so please make sure the function passed into strategy.run is a
# > tf.function or strategy.run is called inside a tf.function if eager behavior is enabled.
#
# Both ways are right. Neither sentence says that the `tf.function` must be made once. The shortest program that does what
# it asks, `tf.function(strategy.run)(step)` in a loop, is the last row of the picture.

# %% [markdown]
# ## Exercise
#
# This evaluation passes tensors, and still traces its step in every call. Change it so that only the first call does.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, traces, counts = build_strategy(setup), [], []

    def step(rows):
        traces.append("once more")
        return tf.reduce_sum(rows)

    for number in range(STEPS):
        evaluate = tf.function(strategy.run)
        evaluate(step, args=(tf.fill([4], float(number)),))
        counts.append(len(traces))
    return Proof("only the first of five calls traces", [len(counts), counts[-1]], [5, counts[0]])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, traces, counts = build_strategy(setup), [], []

    def step(rows):
        traces.append("once more")
        return tf.reduce_sum(rows)

    evaluate = tf.function(strategy.run)
    for number in range(STEPS):
        evaluate(step, args=(tf.fill([4], float(number)),))
        counts.append(len(traces))
    return Proof("only the first of five calls traces", [len(counts), counts[-1]], [5, counts[0]])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what a trace freezes, where this page's steps are traced anew.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): variables that are made in each call.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): why a TPU needs `tf.function` at all.
# - [fm21 dataset_misdistributed](fm21_dataset_misdistributed.ipynb): batches whose size depends on the number of devices.
