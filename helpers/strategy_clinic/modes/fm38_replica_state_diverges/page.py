# %% [markdown]
# # FM38. Batch normalisation keeps other statistics on every replica, and a file keeps one
#
# The model trains on several devices and is saved. The loaded model has the right weights. Its moving mean and moving variance
# know only the first device's share of the data.
#
# ```text
# moving mean after training -0.05, moving mean of one device 0.65
# ```
#
# *Silent on Keras 3, and loud there under central storage. Keras 2 averages the moving mean. The sentence in question is from the
# reference of `tf.distribute.TPUStrategy`.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm38",
    slug="replica_state_diverges",
    title="Batch normalisation keeps other statistics on every replica, and a file keeps one",
    sees="a saved model has the statistics of one replica's data, and each replica predicts something else",
    fix="`BatchNormalization(synchronized=True)`; for state of your own, `aggregation=` of the variable",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"the moving mean of all replicas is that of one device",
            strategies=("mirrored", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"You must specify an aggregation method to update a AggregatingVariable in Replica Context",
            strategies=("central_storage",),
            devices=(2, 4, 8),
            keras=(3,),
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

session = clinic.open("fm38", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You create the model in the scope, so you believe that each of its variables has the same value on all devices. That holds for
# the weights. Batch normalisation also has a moving mean and a moving variance, which no optimizer updates. `fit` trains, and
# nothing is raised. The experiment calls `model.train_step` as `fit` does, because Keras 3 has no `fit` across several processes.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

BATCH = 16


def examples():
    """Two sorted batches, as files often are: the first half of each is small and the second large."""
    random = np.random.default_rng(0).normal(loc=1.0, size=(2, BATCH, 3)).astype("float32")
    return np.sort(random, axis=1).reshape(2 * BATCH, 3)


def make_model(layer):
    layers = [tf.keras.Input((3,)), layer, tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.MeanSquaredError())
    return model


def train(strategy, model):
    """The steps of `fit`: each replica gives its part of a batch to `model.train_step`."""

    def step(start):
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        first = start + context.replica_id_in_sync_group * each
        model.train_step((tf.slice(examples(), [first, 0], [each, 3]), tf.zeros((each, 1))))

    @tf.function
    def train_step(start):
        strategy.run(step, args=(start,))

    for start in (0, BATCH):
        train_step(tf.constant(start))


def on_one_device():
    model = make_model(tf.keras.layers.BatchNormalization(momentum=0.5))
    train(tf.distribute.get_strategy(), model)
    return model


def moving_mean(model):
    return np.asarray(tf.convert_to_tensor(model.layers[0].moving_mean))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        layer = tf.keras.layers.BatchNormalization(momentum=0.5)  # guilty: not synchronized
        model = make_model(layer)
    train(strategy, model)
    got, want = moving_mean(model), moving_mean(on_one_device())
    return Proof("the moving mean of all replicas is that of one device", [got], [want])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A variable of the scope has one copy on each device. The copies stay equal only if each of them is written with the same value.
# Weights are written with gradients that were added up over all replicas. The moving mean is written by the layer, with the mean
# of its own replica's examples.
#
# Keras 3 creates the moving mean with `VariableAggregation.NONE`. Each copy then keeps its own value. The host reads the
# first copy, and so does a file. Central storage has a single copy and refuses the update.
#
# Keras 2 creates it with `ON_READ` and `MEAN`. The copies differ as well, but a reader gets their mean.
#
# The picture shows the moving mean after `fit`, for sorted data on two replicas. See
# [`BatchNormalization`](https://keras.io/api/layers/normalization_layers/batch_normalization/), argument `synchronized`.

# %%
two = session.setup.but(strategy="mirrored", devices=2)


def trained(**options):
    with build_strategy(two).scope():
        model = make_model(tf.keras.layers.BatchNormalization(momentum=0.5, **options))
    targets = np.zeros((2 * BATCH, 1), "float32")
    model.fit(examples(), targets, batch_size=BATCH, shuffle=False, verbose=0)
    return model


def loaded(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        return tf.keras.models.load_model(f"{folder}/model.keras")


def rows(name, model):
    copies = figures.values_of(model.layers[0].moving_mean)
    return {f"{name}, replica {number}": copy for number, copy in enumerate(copies)}


plain, right = trained(), moving_mean(on_one_device())
MEANS = {"one device": right} | rows("plain layer", plain)
MEANS |= {"plain layer, file": moving_mean(loaded(plain))}
MEANS |= rows("synchronized", trained(synchronized=True))
figures.numbers(MEANS, [f"feature {i}" for i in range(3)], right, "The moving mean after training")

# %% [markdown]
# ## The fix
#
# With `synchronized=True` the replicas compute mean and variance of the whole batch together. Training, statistics and file are
# then those of one device. It costs an all-reduce for each layer and step. Before, with data whose mean is 2:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     layer = tf.keras.layers.BatchNormalization(momentum=0.0)
#     model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
#     model.compile("sgd", "mse")
# data = np.array([[1.0], [1.0], [3.0], [3.0]])
# model.fit(data, data, shuffle=False, verbose=0)
# print(layer.moving_mean.numpy())  # [1.]
# ```
#
# After:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     layer = tf.keras.layers.BatchNormalization(momentum=0.0, synchronized=True)
#     model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
#     model.compile("sgd", "mse")
# data = np.array([[1.0], [1.0], [3.0], [3.0]])
# model.fit(data, data, shuffle=False, verbose=0)
# print(layer.moving_mean.numpy())  # [2.]
# ```
#
# A variable of your own says how updates of several replicas are combined:
# `tf.Variable(value, aggregation=tf.VariableAggregation.MEAN)`. Central storage asks for it here too: `averaged` sets it
# below. The other strategies do not need that.
#
# `checks.assert_replicas_agree(strategy, model.variables)` would have told before the save.
# `print(pasted(checks.assert_replicas_agree))` prints it with all that it needs (`from strategy_clinic import pasted`).


# %%
def averaged(create, **options):
    """For central storage: updates of several replicas are combined by their mean."""
    return create(**options | {"aggregation": tf.VariableAggregation.MEAN})


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        layer = tf.keras.layers.BatchNormalization(momentum=0.5, synchronized=True)  # repair
        with tf.variable_creator_scope(averaged):
            layer.build((None, 3))
        model = make_model(layer)
    train(strategy, model)
    checks.assert_replicas_agree(strategy, model.variables)
    got, want = model.get_weights(), on_one_device().get_weights()
    return Proof("weights and statistics are those of one device", got, want, 1e-5)


session.proves(fixed)

# %%
SETUPS = [two, two.but(devices=1), two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch to Keras 2: the moving mean is right, and the moving variance is too small, since it leaves out how far the replicas lie
# apart. Switch to central storage: Keras 3 raises.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` says:
#
# > While using distribution strategies, the variables created within the strategy's scope will be replicated across all the
# > replicas and can be kept in sync using all-reduce algorithms.
#
# Here the variables are replicated and are not kept in sync. The sentence is judged in
# [fm23](fm23_variable_outside_scope.ipynb), and so is reading and writing such variables outside the scope.

# %% [markdown]
# ## Exercise
#
# This script computes the mean of its inputs by itself. Each replica ends up with a mean of its own. Change how the variable is
# created, so that it holds the mean of one device.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        mean = tf.Variable(tf.zeros(3))

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign(tf.reduce_mean(mine, axis=0))

    @tf.function
    def run_step():
        strategy.run(step)

    run_step()
    want = examples()[:BATCH].mean(axis=0)
    return Proof("the variable holds the mean of one device", [mean.numpy()], [want])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        mean = tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN)

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign(tf.reduce_mean(mine, axis=0))

    @tf.function
    def run_step():
        strategy.run(step)

    run_step()
    want = examples()[:BATCH].mean(axis=0)
    return Proof("the variable holds the mean of one device", [mean.numpy()], [want])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): a loss that each replica computes from its own examples.
# - [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb): a running mean that has one copy and takes every update.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a moving mean that no file keeps.
