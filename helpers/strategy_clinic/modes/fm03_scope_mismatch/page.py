# %% [markdown]
# # FM03. Variables made in different scopes do not train together
#
# A model is made first, the strategy's scope is opened for `compile`, and `fit` stops in its first step. On Keras 2 `compile`
# itself raises: `Variable (…) was not created in the distribution strategy scope of …`.
#
# ```text
# Keras 3  RuntimeError: Need to be inside "with strategy.scope()" for …
# ```
#
# *Loud under every strategy; silent if an optimizer is built outside the scope and there are several replicas. Documents: the
# answer on `get_weights()` in `strategy.run` (000) and the reference of `TPUStrategy` (003).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm03",
    slug="scope_mismatch",
    title="Variables made in different scopes do not train together",
    sees='a model made before the scope and compiled in it: `fit` raises `Need to be inside "with strategy.scope()"`',
    fix="make the model, its optimizer and its metrics in the scope of one and the same strategy",
    document="000",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "RuntimeError",
            r'Need to be inside "with strategy\.scope\(\)" for',
            strategies=(
                "one_device",
                "mirrored",
                "central_storage",
                "multi_worker",
                "parameter_server",
                "tpu_traced",
                "tpu",
            ),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"was not created in the distribution strategy scope of",
            strategies=(
                "one_device",
                "mirrored",
                "central_storage",
                "multi_worker",
                "parameter_server",
                "tpu_traced",
                "tpu",
            ),
            keras=(2,),
        ),
    ),
    claims=(
        Claim("000-C6", "a model and an optimizer made outside the scope train in it", "false"),
        Claim("003-C31", "optimizers and metrics belong in the scope", {2: "true", 3: "half"}),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm03", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The model comes from a function, or from another module, and is there before you think of devices. The training is what you want
# to distribute. You believe that the scope belongs around it, so you open the scope for `compile`.

# %%
import contextlib

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, observe

STEPS = 2
X = [[0.0], [0.25], [0.5], [0.75], [1.0], [1.25], [1.5], [1.75]]


def make_model():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    return tf.keras.Sequential(layers)


def fit(model):
    """Each epoch is one step on all examples; the targets are twice the inputs."""
    data = np.array(X, dtype="float32")
    model.fit(data, 2 * data, batch_size=len(X), epochs=STEPS, verbose=0)


def weights_of(model):
    """Kernel, bias, and the count of steps."""
    return [*model.get_weights(), model.optimizer.iterations.numpy()]


def proof(model):
    """The model against one that is trained by `fit`, by the same steps, without a strategy."""
    alone = make_model()
    alone.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
    fit(alone)
    what = "weights and count of steps are those of one device"
    return Proof(what, weights_of(model), weights_of(alone), tolerance=1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model = make_model()  # guilty: made before the scope is open
    observe(model=model.variables)
    with strategy.scope():
        model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
    fit(model)
    return proof(model)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `strategy.scope()` runs nothing. While it is open, that strategy creates the new variables, and each variable remembers it. A
# Keras model and an optimizer also remember the strategy that was current when they were made.
#
# `fit` trains under the model's strategy; here that is none. Adam keeps two slot variables beside each weight. The optimizer asks
# its own strategy to place them, and that strategy refuses outside its scope. If `fit` is called in the scope, it refuses the
# weight: `colocate_vars_with` must only be passed a variable created in this scope.
#
# An optimizer made outside raises *Mixing different tf.distribute.Strategy objects* on Keras 3. Keras 2 builds it in the
# model's scope. An optimizer *built* outside raises nothing: it has one set of slots, and every replica updates it in every
# step. See
# [`Strategy.scope`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope).

# %%
two = session.setup.but(strategy="mirrored", devices=2)


def outcome(setup, model_in_scope, optimizer_in_scope, build=False):
    """What becomes of a model that `fit` trains: the right weights, wrong ones, or an error."""
    strategy = build_strategy(setup)
    with strategy.scope() if model_in_scope else contextlib.nullcontext():
        model = make_model()
    try:
        with strategy.scope() if optimizer_in_scope else contextlib.nullcontext():
            optimizer = tf.keras.optimizers.Adam(0.1)
            if build:
                optimizer.build(model.trainable_variables)
        model.compile(optimizer, loss="mse")
        fit(model)
    except (ValueError, RuntimeError, AssertionError):
        return "raises"
    return "right" if proof(model).holds else "wrong"


MADE = {
    "both in the scope": (True, True),
    "model outside": (False, True),
    "optimizer outside": (True, False),
    "optimizer outside, built": (True, False, True),
}
OUTCOMES = {
    name: [outcome(two.but(devices=count), *made) for count in (1, 2)]
    for name, made in MADE.items()
}
COLUMNS = ["1 replica", "2 replicas"]
figures.words(OUTCOMES, COLUMNS, ["raises", "wrong"], "The weights after fit")

# %% [markdown]
# ## The fix
#
# Make the model in the scope too. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
# with strategy.scope():
#     model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
# model.fit(tf.ones((4, 1)), tf.zeros((4, 1)), verbose=0)  # RuntimeError: Need to be inside "with strategy.scope()"
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
#     model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
# model.fit(tf.ones((4, 1)), tf.zeros((4, 1)), verbose=0)
# print(model.get_weights()[0].round(2))  # [[0.9]]
# ```
#
# You may open the scope as often as you like, if it is the scope of the same strategy object. A second `MirroredStrategy()` for
# the same devices is another strategy. The experiment trains in a loop, since `fit` does not run under every strategy of the
# panel.


# %%
def train(strategy, model):
    """The steps of `fit`, with the loss divided by the replicas, since their gradients are added."""

    def step():
        data = tf.constant(X)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 2 * data))
            loss /= strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step():
        strategy.run(step)

    with strategy.scope():
        model.optimizer.build(model.trainable_variables)  # not in a replica: see fm32
    for _ in range(STEPS):
        train_step()


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():  # repair
        model = make_model()
        model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
    train(strategy, model)
    return proof(model)


session.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy to `default`: it works, since without a strategy all variables are of one kind. Switch `devices` to 1: it
# still fails, since a strategy with one replica also knows its own variables.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" (000):
#
# > The model's weights reside within the replicas managed by the strategy.
#
# All three of its examples make model and optimizer first, and open the scope around the loop. In a run, this order raises.
#
# The reference of `TPUStrategy` (003):
#
# > Some common objects that create variables in TF are Models, Optimizers, Metrics. Such objects should always be initialized in
# > the scope
#
# This holds for optimizers. Keras 2 enforces it for metrics. Keras 3 takes a metric from outside, and counts all replicas.


# %% tags=["claims"]
def examples_train(setup):
    """The document's order of things, with the optimizer built in its first step, and built before."""
    found = []
    for build in (False, True):
        strategy, model = build_strategy(setup), make_model()
        model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
        if build:
            model.optimizer.build(model.trainable_variables)
        try:
            with strategy.scope():
                train(strategy, model)
            found.append(True)
        except (ValueError, RuntimeError, AssertionError):
            found.append(False)
    return found


def metric_from_outside_counts(setup):
    """A metric made outside, given to a model made in scope: is it taken, and does it count all replicas?"""
    strategy, metric = build_strategy(setup), tf.keras.metrics.Mean()
    try:
        with strategy.scope():
            model = make_model()
            model.compile("sgd", tf.keras.losses.MeanSquaredError(), metrics=[metric])
    except ValueError:
        return False

    @tf.function
    def update():
        strategy.run(lambda: metric.update_state(tf.constant([1.0, 2.0, 6.0])))

    update()
    return bool(metric.variables[1].numpy() == 3 * strategy.num_replicas_in_sync)


session.judges(
    {
        "000-C6": examples_train(two) + examples_train(two.but(devices=1)),
        "003-C31": [
            OUTCOMES["optimizer outside, built"] == ["right", "wrong"],
            OUTCOMES["both in the scope"] == ["right", "right"],
            not metric_from_outside_counts(two),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script makes its model in the scope, and trains a clone of it. `clone_model` makes a new model with variables of its own.
# The training raises. Move one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        original = make_model()
    model = tf.keras.models.clone_model(original)
    with strategy.scope():
        model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
    train(strategy, model)
    return proof(model)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        original = make_model()
        model = tf.keras.models.clone_model(original)
        model.compile(tf.keras.optimizers.Adam(0.1), loss="mse")
    train(strategy, model)
    return proof(model)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): a model loaded outside the scope, which raises nothing.
# - [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb): a counter made outside, which every replica updates.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): everything made in the scope, and the step
#   run there too.
