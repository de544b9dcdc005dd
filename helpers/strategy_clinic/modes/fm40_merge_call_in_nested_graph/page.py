# %% [markdown]
# # FM40. An update in a nested graph cannot meet the other replicas
#
# A step calls a helper that is a `tf.function` of its own, and the helper updates the weights. Without a strategy it trains.
# Under one it raises while it is traced. An optimizer of Keras 3 with `gradient_accumulation_steps` says the same from `fit`.
#
# ```text
# RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen if the
# function `fn` passed to `strategy.run()` contains a nested `@tf.function`, and the nested `@tf.function`
# contains a synchronization point, such as aggregating gradients (e.g, optimizer.apply_gradients), …
# ```
#
# *Loud under every strategy with replicas; one replica is enough. A nested function fails with both generations of Keras, the
# options of an optimizer on Keras 3 only. A condition in the step has a page of its own:
# [fm15](fm15_accumulation_under_strategy.ipynb). The `TPUStrategy` reference (003) says where a `tf.function` may stand.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm40",
    slug="merge_call_in_nested_graph",
    title="An update in a nested graph cannot meet the other replicas",
    sees="`merge_call` called while defining a new graph, from a nested `tf.function` or `gradient_accumulation_steps`",
    fix="one `tf.function`, around `strategy.run`; a larger batch instead of `gradient_accumulation_steps`",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"`merge_call` called while defining a new graph or a tf\.function\. This can often happen",
            strategies=("mirrored", "central_storage", "multi_worker", "parameter_server"),
        ),
    ),
    claims=(),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm40", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The step is traced for speed. Its helper `learn` is used elsewhere too, so it is a `tf.function` as well. You believe that it
# does no harm to trace a function twice.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

RATE, BATCH = 0.1, 8


def examples():
    return np.random.default_rng(0).normal(size=(BATCH, 3)).astype("float32")


def begin(strategy, **options):
    """A linear model and an optimizer, in scope and built."""
    with strategy.scope():
        layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
        model = tf.keras.Sequential(layers)
        model.compile(tf.keras.optimizers.SGD(RATE, **options))
        model.optimizer.build(model.trainable_variables)
    return model


def own_rows():
    """This replica's part of the batch."""
    context = tf.distribute.get_replica_context()
    rows = tf.constant(examples())
    return rows[context.replica_id_in_sync_group :: context.num_replicas_in_sync]


def learner(model):
    """A function that updates the model from some rows of the batch."""

    def learn(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(rows) - 1.0)) / BATCH
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    return learn


def on_paper(model, steps=1):
    """The weights after steps with the whole batch, worked out by hand."""
    kernel, bias = model.get_weights()
    for _ in range(steps):
        slope = 2 * (examples() @ kernel + bias - 1.0) / BATCH
        kernel, bias = kernel - RATE * examples().T @ slope, bias - RATE * slope.sum(axis=0)
    return [kernel, bias]


def proof(model, want):
    return Proof(
        "the weights are those of a step with the whole batch", model.get_weights(), want, 1e-5
    )


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want = on_paper(model)
    learn = tf.function(learner(model))  # guilty: a graph of its own inside the step

    def step():
        learn(own_rows())

    @tf.function
    def train_step():
        strategy.run(step)

    train_step()
    return proof(model, want)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# An update needs all replicas: their gradients are added up first. `apply_gradients` therefore calls `merge_call`, where a
# replica waits for the others. TensorFlow traces the replicas side by side into one graph, and can wait only there. A
# `tf.function` that the step calls is traced into another graph. So are the branches of a condition and the body of a `tf.range`
# loop. TensorFlow cannot leave such an inner graph for the other replicas, so it refuses to trace it.
#
# A nested function that only computes is fine. So is a step that is a `tf.function` itself: `strategy.run` takes its Python
# function and traces that.
#
# Keras 3 writes conditions for you. With `gradient_accumulation_steps` the update stands in one, and with
# `ema_overwrite_frequency` the overwriting, which the nightly of October 2026, Keras 3.16, runs all the same. See
# [`merge_call`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext#merge_call).


# %%
def in_the_step(model):
    return learner(model)


def nested(model):
    return tf.function(learner(model))


def looped(model):
    learn = learner(model)

    def twice(rows):
        for _ in tf.range(2):
            learn(rows)

    return twice


def gradients_nested(model):
    @tf.function
    def gradients_of(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(rows) - 1.0)) / BATCH
        return tape.gradient(loss, model.trainable_variables)

    def learn(rows):
        model.optimizer.apply_gradients(zip(gradients_of(rows), model.trainable_variables))

    return learn


def scaled(model):
    """The same update by an optimizer that scales losses, as mixed precision does."""
    scaling = tf.keras.mixed_precision.LossScaleOptimizer(model.optimizer)
    scaling.build(model.trainable_variables)

    def learn(rows):
        gradients = [tf.zeros(weight.shape) for weight in model.trainable_variables]
        scaling.apply_gradients(zip(gradients, model.trainable_variables))

    return learn


WAYS = {
    "in the step": (in_the_step, {}),
    "in a tf.function in the step": (nested, {}),
    "in a tf.range loop": (looped, {}),
    "only the gradients in one": (gradients_nested, {}),
    "use_ema": (in_the_step, {"use_ema": True}),
    "ema_overwrite_frequency": (in_the_step, {"use_ema": True, "ema_overwrite_frequency": 2}),
    "LossScaleOptimizer": (scaled, {}),
}
if session.setup.keras == 3:
    WAYS["gradient_accumulation_steps"] = (in_the_step, {"gradient_accumulation_steps": 2})


def runs(setup, way, options):
    strategy = build_strategy(setup)
    with strategy.scope():
        learn = way(begin(strategy, **options))
    try:
        tf.function(strategy.run)(lambda: learn(own_rows()))
    except RuntimeError as error:
        return "merge_call" not in str(error)
    return True


two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
FOUND = {name: [runs(each, *way) for each in (alone, two)] for name, way in WAYS.items()}
figures.grid(FOUND, ["no strategy", "mirrored x2"], "runs", "raises", "Does the update run?")

# %% [markdown]
# ## The fix
#
# Make one `tf.function`, around `strategy.run`, and let the step call plain Python functions. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1)
#     optimizer.build([weight])
#
# @tf.function
# def learn():
#     optimizer.apply_gradients([(tf.constant(1.0), weight)])
#
# strategy.run(lambda: learn())  # RuntimeError: `merge_call` called while defining a new graph
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1)
#     optimizer.build([weight])
#
# def learn():
#     optimizer.apply_gradients([(tf.constant(1.0), weight)])
#
# tf.function(lambda: strategy.run(learn))()
# print(round(float(weight.numpy()), 3))  # 0.8
# ```
#
# If the function comes from elsewhere, its `python_function` is the plain one. Move a loop out of the step, around
# `strategy.run`.
#
# For the options of a Keras 3 optimizer:
#
# - Instead of `gradient_accumulation_steps=n`, give `fit` n times the `batch_size`: the weights are the same. Where memory
#   forbids that, [fm15](fm15_accumulation_under_strategy.ipynb) adds up gradients by hand.
# - Instead of `ema_overwrite_frequency`, keep `use_ema=True` and give `fit` the callback `keras.callbacks.SwapEMAWeights()`.
# - `compile(run_eagerly=True)` runs both as they are under `MirroredStrategy`, without a graph and slowly.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want = on_paper(model)
    learn = learner(model)  # repair: part of the step's own graph

    def step():
        learn(own_rows())

    @tf.function
    def train_step():
        strategy.run(step)

    train_step()
    return proof(model, want)


session.proves(fixed)

# %%
SETUPS = [alone, two, two.but(strategy="central_storage"), two.but(strategy="multi_worker")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set the strategy `default` or `one_device`: the nested function is no trouble, which is how it got into the script. Set
# `mirrored` with one device: it is refused all the same.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) says:
#
# > … please make sure the function passed into strategy.run is a tf.function or strategy.run is called inside a tf.function if
# > eager behavior is enabled.
#
# Either is right. It does not say that a `tf.function` one level further in is not. The error message adds a rule for subclasses
# of `tf.keras.Model`: do not decorate `train_step`. That holds on Keras 2. `fit` of Keras 3 hands `train_step` itself to
# `strategy.run`, so a decorated one trains; a decorated helper that it calls raises.
#
# Reports name mixed precision too. In the versions of this record a `LossScaleOptimizer` trains under `MirroredStrategy`, as the
# picture shows. Central storage refuses it, in other words.

# %% [markdown]
# ## Exercise
#
# To save calls, each call of this step makes two updates. It raises. Change it so that two updates are made.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want, learn = on_paper(model, steps=2), learner(model)

    def step():
        for _ in tf.range(2):
            learn(own_rows())

    @tf.function
    def train_step():
        strategy.run(step)

    train_step()
    return Proof("the weights are those of two steps", model.get_weights(), want, 1e-5)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want, learn = on_paper(model, steps=2), learner(model)

    def step():
        learn(own_rows())

    @tf.function
    def train_step():
        for _ in tf.range(2):
            strategy.run(step)

    train_step()
    return Proof("the weights are those of two steps", model.get_weights(), want, 1e-5)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm15 accumulation_under_strategy](fm15_accumulation_under_strategy.ipynb): the same message from a condition of your own,
#   and sums that are wrong without a message.
# - [fm43 retracing_every_step](fm43_retracing_every_step.ipynb): the other mistake with a `tf.function` too many.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): no `tf.function` at all.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): other calls that need all replicas.
