# %% [markdown]
# # FM37. A mean over each replica's part makes the update too large
#
# The step is the one that has always trained well, and it runs on four devices without a word. The loss falls faster than
# before, or it explodes: every update is four times as large as the one you had tuned.
#
# *Silent. The number of replicas is the factor, and one replica is healthy. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
            r"the losses of \d+ replicas add up to \d+\.\d\d times the loss of the whole batch",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim("003-C16", "`reduce` adds up over replicas, and with `axis=0` over examples", "true"),
        Claim(
            "003-C18",
            "MEAN with `axis=0` divides by the true count; a mean of means weighs some examples 1/8, some 1/4",
            "true",
        ),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm37", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The loss of a batch is the mean over its examples. You have written it this way since your first model, so each replica takes
# the mean over the examples that it has. You expect the strategy to average what the replicas have found. Nobody averages.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, runner

BATCH, RATE, STEPS = 16, 0.05, 2


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
    """One step in which each replica takes its part of the batch; returns what each calls the loss."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        with tf.GradientTape() as tape:
            loss = loss_of(errors_of(model, mine))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return runner(strategy)(step)


def train_checked(setup, loss_of):
    """Trains under the strategy and on one device, and compares the weights."""
    strategy, alone = build_strategy(setup), make_model()
    with strategy.scope():
        model = make_model()
    for _ in range(STEPS):
        whole = tf.reduce_mean(errors_of(model, examples()))
        losses = train(strategy, model, loss_of)
        checks.assert_loss_of_whole_batch(strategy, losses, whole)
        train(tf.distribute.get_strategy(), alone, tf.reduce_mean)
    return Proof("the weights are those of one device", model.get_weights(), alone.get_weights())


# %%
@experiment
def broken(setup):
    loss_of = tf.reduce_mean  # guilty: a mean over the examples of one replica
    return train_checked(setup, loss_of)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# `apply_gradients` *adds* the gradients of all replicas. That is right if each replica has computed its share of one loss, the
# sum over its own examples divided by the number of *all* examples. A mean over its own examples is divided by too little: with
# n replicas by 1/n of the batch, so the sum is n times what it should be. No strategy can tell, since a loss is just a number.
#
# Plain SGD then behaves as if you had multiplied the learning rate. Adam divides gradients by their own size and hides the
# mistake, until you clip them or add a penalty.
#
# The picture takes one step in several ways and measures the update, in updates of one device. See the
# [custom training guide](https://www.tensorflow.org/tutorials/distribute/custom_training#define_the_loss_function).


# %%
def share(errors):
    return tf.reduce_sum(errors) / BATCH


def average(errors):
    return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)


def mean_share(errors):
    return tf.reduce_mean(errors) / tf.distribute.get_strategy().num_replicas_in_sync


def each_its_own(errors):
    return errors


def keras_loss(errors):
    """A Keras loss object, given errors as predictions."""
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
    "no mean at all": each_its_own,
    "sum / whole batch": share,
    "mean / replicas": mean_share,
    "compute_average_loss": average,
}
if clinic.setup.keras == 3:
    WAYS["loss object of Keras 3"] = keras_loss
two = clinic.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
UNIT = update(two.but(strategy="default", devices=1), tf.reduce_mean)
FOUND = {way: [update(place, loss) / UNIT for place in PLACES] for way, loss in WAYS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(FOUND, COLUMNS, [1.0] * len(PLACES), "How large is one update?")

# %% [markdown]
# ## The fix
#
# Let every replica divide by the whole batch. `tf.nn.compute_average_loss` does so, and so does a sum divided by a number that
# you keep for it. Give it that number: without it the replicas guess, and a smaller last batch is guessed wrong. A loss object of
# Keras 3 counts the replicas itself; one of Keras 2 raises unless you take its mean away.
#
# To see where you stand, put `checks.assert_loss_of_whole_batch(strategy, losses, whole)` behind the first step.


# %%
@experiment
def fixed(setup):
    loss_of = average  # repair: this replica's share of the loss of the whole batch
    return train_checked(setup, loss_of)


clinic.proves(fixed)

# %%
SETUPS = [two.but(devices=count) for count in (1, 2, 4)] + [two.but(keras=clinic.setup.other_keras)]
SETUPS += [two.but(strategy="central_storage"), two.but(strategy="tpu_traced", devices=8)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# One device, and the failure is gone; every device that you add makes the update larger. A parameter server is spared, because
# its workers do not step together: nobody adds up their gradients.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, warns of a mean of means where it speaks of *reporting* a loss, and is right. Its own training
# loop, a page earlier, takes the gradient of one loss for each example with no mean at all: the second row of the picture.

# %% tags=["claims"]
replicas = build_strategy(two)
ERRORS = np.arange(6, dtype="float32")
PARTS = [ERRORS[:4], ERRORS[4:]]  # a last batch of six: the replicas get four and two


def on_replicas(values):
    """A value for each replica, as a step would return it."""
    return replicas.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group])
    )


def reduced(how, values, axis):
    return replicas.reduce(how, on_replicas(values), axis=axis).numpy()


halves = [np.float32([0, 1, 2, 3]), np.float32([4, 5, 6, 7])]
mean_of_means = reduced("MEAN", [part.mean() for part in PARTS], None)
weights = np.float32([1 / 8] * 4 + [1 / 4] * 2)
clinic.judges(
    {
        "003-C16": [
            np.array_equal(reduced("SUM", halves, None), [4, 6, 8, 10]),
            reduced("SUM", halves, 0) == 28,
        ],
        "003-C18": [
            np.isclose(reduced("MEAN", PARTS, 0), ERRORS.mean()),
            np.isclose(mean_of_means, weights @ ERRORS),
            not np.isclose(mean_of_means, ERRORS.mean()),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# The loss of this step is divided as it should be. It also has a penalty for large weights, and that one counts once for every
# replica. Change it so that it counts once.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy, alone = build_strategy(setup), make_model()
    with strategy.scope():
        model = make_model()

    def loss_for(model):
        return lambda errors: average(errors) + tf.nn.l2_loss(model.weights[1] + 1.0)

    train(strategy, model, loss_for(model))
    train(tf.distribute.get_strategy(), alone, loss_for(alone))
    return Proof("the weights are those of one device", model.get_weights(), alone.get_weights())


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, alone = build_strategy(setup), make_model()
    with strategy.scope():
        model = make_model()

    def loss_for(model):
        def loss_of(errors):
            penalty = tf.nn.l2_loss(model.weights[1] + 1.0)
            return average(errors) + tf.nn.scale_regularization_loss(penalty)

        return loss_of

    train(strategy, model, loss_for(model))
    train(tf.distribute.get_strategy(), alone, loss_for(alone))
    return Proof("the weights are those of one device", model.get_weights(), alone.get_weights())


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the loss is right and the batch has grown.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): a loss whose gradients are not there at all.
