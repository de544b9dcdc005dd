# %% [markdown]
# # FM37. A mean over each replica's part makes the update too large
#
# A training step that is tuned on one device runs on several without an error. Each update is then larger by the number of
# replicas. The loss falls faster, or it diverges.
#
# ```text
# bias after one step on two replicas 0.2, on one device 0.1
# ```
#
# *Silent. Strategy and device count matter: the number of replicas is the factor. The reference of `tf.distribute.TPUStrategy`
# warns of a mean of means, and its training loop has no mean at all.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm37",
    slug="loss_scaled_per_replica",
    title="A mean over each replica's part makes the update too large",
    sees="the same step trains too fast, or diverges, and worse with every device that is added",
    fix="divide by the whole batch: `tf.nn.compute_average_loss(losses, global_batch_size=...)`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"one step on all replicas changes the weights as on one device",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
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

session = clinic.open("fm37", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The loss of a batch is the mean over its examples. You write it as you do on one device, so each replica takes the mean over the
# examples that it gets. You believe that the strategy then averages the gradients of the replicas. It adds them.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

BATCH, RATE = 16, 0.05


def examples():
    return np.random.default_rng(0).normal(size=(BATCH, 3)).astype("float32")


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer=tf.keras.optimizers.SGD(RATE))
    model.optimizer.build(model.trainable_variables)
    return model


def errors_of(model, data):
    """The loss of every single example."""
    return tf.square(model(data)[:, 0] - 1.0)


def train(strategy, model, loss_of):
    """One step in which each replica takes its part of the batch. Returns the loss of each replica."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        with tf.GradientTape() as tape:
            loss = loss_of(errors_of(model, mine))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train_step():
        return strategy.run(step)

    return train_step()


def proof(model):
    """The weights, bias first, against one step on one device."""
    alone = make_model()
    train(tf.distribute.get_strategy(), alone, tf.reduce_mean)
    what = "one step on all replicas changes the weights as on one device"
    return Proof(what, model.get_weights()[::-1], alone.get_weights()[::-1])


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    loss_of = tf.reduce_mean  # guilty: a mean over the examples of one replica
    train(strategy, model, loss_of)
    return proof(model)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `apply_gradients` *adds* the gradients of all replicas. The sum is right if each replica computes its share of one loss: the sum
# over its own examples, divided by the number of *all* examples.
#
# A mean over its own examples divides by the size of one part. With n replicas that is n times too small, so the update is n
# times too large. A strategy cannot know how the loss was divided.
#
# Plain SGD behaves as with n times the learning rate. Adam hides the error, until gradients are clipped or a penalty is added.
#
# The picture takes one step in four ways and gives the update in units of one device. See the
# [custom training guide](https://www.tensorflow.org/tutorials/distribute/custom_training#define_the_loss_function).


# %%
def average(errors):
    return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)


def keras_loss(errors):
    """A Keras loss object, which gets the errors as predictions."""
    return tf.keras.losses.MeanAbsoluteError()(tf.zeros_like(errors)[:, None], errors[:, None])


def update(setup, loss_of):
    """How far one step moves the bias."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    train(strategy, model, loss_of)
    return float(model.get_weights()[1][0])


WAYS = {
    "tf.reduce_mean": tf.reduce_mean,
    "no mean at all": tf.identity,
    "compute_average_loss": average,
}
if session.setup.keras == 3:
    WAYS["loss object of Keras 3"] = keras_loss
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
UNIT = update(two.but(strategy="default", devices=1), tf.reduce_mean)
FOUND = {way: [update(place, loss) / UNIT for place in PLACES] for way, loss in WAYS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(FOUND, COLUMNS, [1.0] * len(PLACES), "How large is one update?")

# %% [markdown]
# ## The fix
#
# Let every replica divide by the size of the whole batch. `tf.nn.compute_average_loss` does that. Before, with a batch of four
# examples, two on each replica; one device would print 0.2:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, optimizer = tf.Variable(0.0), tf.keras.optimizers.SGD(0.1)
#
# def step():
#     with tf.GradientTape() as tape:
#         loss = tf.reduce_mean(tf.square(weight - [1.0, 1.0]))
#     optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
#
# strategy.run(step)
# print(weight.numpy().round(3))  # 0.4
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, optimizer = tf.Variable(0.0), tf.keras.optimizers.SGD(0.1)
#
# def step():
#     with tf.GradientTape() as tape:
#         loss = tf.nn.compute_average_loss(tf.square(weight - [1.0, 1.0]), global_batch_size=4)
#     optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
#
# strategy.run(step)
# print(weight.numpy().round(3))  # 0.2
# ```
#
# Pass `global_batch_size`: the default assumes equal parts. A loss object of Keras 3 divides by
# the number of replicas itself. One of Keras 2 raises, unless its `reduction` is `SUM` or `NONE`. A penalty on the weights is the
# same on every replica, so `tf.nn.scale_regularization_loss` divides it by the number of replicas.
#
# `checks.assert_loss_of_whole_batch` finds the error after the first step. `print(pasted(checks.assert_loss_of_whole_batch))`
# prints it with all that it needs (`from strategy_clinic import pasted`).


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    whole = tf.reduce_mean(errors_of(model, examples()))
    loss_of = average  # repair: this replica's share of the loss of the whole batch
    losses = train(strategy, model, loss_of)
    checks.assert_loss_of_whole_batch(strategy, losses, whole)
    return proof(model)


session.proves(fixed)

# %%
SETUPS = [two.but(devices=count) for count in (1, 2, 4)] + [
    two.but(keras=session.setup.other_keras)
]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device: the failure is gone. Set more devices: the update grows with them. A parameter server does not fail: its
# workers do not step together.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` warns of a mean of means where it speaks of *reporting* a loss:
#
# > Contrast this with computing reduce_mean to get a scalar value on each replica and this function to average those means, which
# > will weigh some values 1/8 and others 1/4.
#
# That is judged in [fm19](fm19_partial_last_batch.ipynb). About gradients the reference says nothing. Its
# own training loop differentiates one loss for each example, without any mean: the second row of the picture.

# %% [markdown]
# ## Exercise
#
# The loss of this step is divided correctly. Its penalty for a large bias counts once for every replica. Change it so that it
# counts once.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, alone = build_strategy(setup), make_model()
    with strategy.scope():
        model = make_model()

    def loss_for(model):
        return lambda errors: average(errors) + tf.nn.l2_loss(model.trainable_variables[1] + 1.0)

    train(strategy, model, loss_for(model))
    train(tf.distribute.get_strategy(), alone, loss_for(alone))
    return Proof("the weights are those of one device", model.get_weights(), alone.get_weights())


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, alone = build_strategy(setup), make_model()
    with strategy.scope():
        model = make_model()

    def loss_for(model):
        def loss_of(errors):
            penalty = tf.nn.l2_loss(model.trainable_variables[1] + 1.0)
            return average(errors) + tf.nn.scale_regularization_loss(penalty)

        return loss_of

    train(strategy, model, loss_for(model))
    train(tf.distribute.get_strategy(), alone, loss_for(alone))
    return Proof("the weights are those of one device", model.get_weights(), alone.get_weights())


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): the mean of means in a number that is only reported.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the loss is right, and the batch has grown.
# - [fm38 replica_state_diverges](fm38_replica_state_diverges.ipynb): statistics that each replica computes from its own examples.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): a loss without gradients.
