# %% [markdown]
# # FM38. Batch normalisation keeps other statistics on every replica, and a file keeps one
#
# The model trains on several devices and is saved. What comes back has the right weights, and moving statistics that only the
# first device has ever seen: those of its share of the data.
#
# *Silent on Keras 3, and loud there under central storage. Keras 2 averages instead. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
            r"\d+ of \d+ variables are not the same on all \d+ replicas",
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
    claims=(
        Claim("003-C26", "scope variables are replicated and *can* be kept in sync", "true"),
        Claim("003-C30", "variables of the scope are read and written outside it", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm38", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that a variable made in the scope has the same value on all devices: that is what *mirrored* says, and for weights
# it is so. A layer for batch normalisation also has a moving mean and a moving variance, which no optimizer ever touches.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats, runner

BATCH, STEPS = 16, 2


class Shared(tf.keras.layers.BatchNormalization):
    """Its moving statistics say what becomes of several replicas' values: their mean."""

    def add_weight(self, *names, **options):
        if not options.get("trainable", True):
            options.setdefault("aggregation", "mean")
        return super().add_weight(*names, **options)


def examples(number):
    """One batch, sorted, as files often are: the first half is small and the second large."""
    random = np.random.default_rng(number).normal(loc=1.0, size=(BATCH, 3))
    return np.sort(random, axis=0).astype("float32")


def model_with(layer):
    layers = [tf.keras.Input((3,)), layer, tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1))
    model.optimizer.build(model.trainable_variables)
    return model


def train(strategy, model):
    """Two steps; each replica takes its part of the batch and its share of the loss."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        for number in range(STEPS):
            first = context.replica_id_in_sync_group * each
            mine = tf.slice(examples(number), [first, 0], [each, 3])
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(mine, training=True))) / BATCH
            gradients = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    runner(strategy)(step)


def trained(strategy, make_layer):
    with strategy.scope():
        model = model_with(make_layer())
    train(strategy, model)
    return model


def plain():
    return tf.keras.layers.BatchNormalization(momentum=0.5)


def synchronized():
    return Shared(momentum=0.5, synchronized=True)


def moving_mean(model):
    return np.asarray(tf.convert_to_tensor(model.layers[0].moving_mean))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    make_layer = plain  # guilty: every replica keeps its own moving statistics
    model = trained(strategy, make_layer)
    checks.assert_replicas_agree(strategy, model.variables)
    alone = trained(tf.distribute.get_strategy(), plain)
    want = [moving_mean(alone)]
    return Proof("the moving mean is that of one device", [moving_mean(model)], want)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A variable in the scope has one copy on each device, and nothing keeps the copies equal but the way they are *written*. Weights
# change by gradients, which were added up before, so every copy takes the same step. The moving mean is written by the layer,
# with what its replica sees. Keras 3 makes it with `VariableAggregation.NONE`: every copy takes its own value, and whoever reads
# it outside the replicas, a file for instance, gets the first. Central storage has a single copy and refuses.
#
# Keras 2 makes it `ON_READ` with `MEAN`: the copies differ as much, and a reader gets their mean.
#
# The picture shows one moving mean: sorted data, two replicas. See
# [`BatchNormalization`](https://keras.io/api/layers/normalization_layers/batch_normalization/) on `synchronized`.

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


def loaded(model):
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, "keras")
        return formats.load(folder, "keras", lambda: model_with(plain()))


lonely = trained(tf.distribute.get_strategy(), plain)
mirrored = trained(build_strategy(two), plain)
COPIES = figures.values_of(mirrored.layers[0].moving_mean)
MEANS = {"one device, all examples": moving_mean(lonely)}
MEANS |= {f"copy of replica {i}": copy for i, copy in enumerate(COPIES)}
MEANS |= {"what the file keeps": moving_mean(loaded(mirrored))}
COLUMNS = [f"feature {i}" for i in range(3)]
figures.numbers(MEANS, COLUMNS, moving_mean(lonely), "The moving mean after training")

# %% [markdown]
# ## The fix
#
# `synchronized=True` lets the replicas work out mean and variance together, so training, statistics and file are those of one
# device. It costs an all-reduce for each layer and step, and it does not help under central storage. `Shared` does: it also names
# an aggregation, as any layer with state of its own should.
#
# `checks.assert_replicas_agree(strategy, model.variables)` belongs in front of every save.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    make_layer = synchronized  # repair: one mean and one variance, of all examples
    model = trained(strategy, make_layer)
    checks.assert_replicas_agree(strategy, model.variables)
    alone = trained(tf.distribute.get_strategy(), plain)
    want = alone.get_weights()
    return Proof("weights and statistics are those of one device", model.get_weights(), want, 1e-5)


clinic.proves(fixed)

# %%
SETUPS = [two.but(devices=1), two, two.but(keras=clinic.setup.other_keras)]
SETUPS += [two.but(strategy="central_storage", keras=each) for each in (3, 2)]
SETUPS += [two.but(strategy="multi_worker"), two.but(strategy="tpu_traced", devices=8)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch to Keras 2, and a reader gets a mean: the moving mean is then right, and the moving variance too small, since it knows
# nothing of how far the replicas lie apart. Switch to central storage, and Keras 3 will not train such a layer at all.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, says that variables made in the scope are replicated "and can be kept in sync using all-reduce".
# So they can; whether they are is up to the code that writes them. Written from outside, all copies take the same value.


# %% tags=["claims"]
def equal(model, names):
    """For each of these variables: has it several copies, and are they equal?"""
    chosen = [weight for weight in model.variables if any(name in weight.name for name in names)]
    copies = [figures.values_of(weight) for weight in chosen]
    return [len(each) == 2 and np.allclose(*each, atol=1e-6) for each in copies]


agreed = trained(build_strategy(two), synchronized)
apart = not any(equal(mirrored, ["moving"]))
mirrored.layers[0].moving_mean.assign([1.0, 2.0, 3.0])
clinic.judges(
    {
        "003-C26": [
            *equal(mirrored, ["kernel", "bias", "gamma", "beta"]),
            *equal(agreed, ["moving"]),
            apart,
        ],
        "003-C30": [
            np.array_equal(moving_mean(mirrored), [1, 2, 3]),
            *equal(mirrored, ["moving_mean"]),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# No batch normalisation here: the script counts for itself how large its inputs are, and each replica ends up with a count of its
# own. Change how the variable is made, so that all replicas hold the mean of one device.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        mean = tf.Variable(tf.zeros(3))

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(0), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign(tf.reduce_mean(mine, axis=0))

    runner(strategy)(step)
    checks.assert_replicas_agree(strategy, [mean])
    want = examples(0).mean(axis=0)
    return Proof("all replicas hold the mean of one device", [mean.numpy()], [want])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        mean = tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN)

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(0), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign(tf.reduce_mean(mine, axis=0))

    runner(strategy)(step)
    checks.assert_replicas_agree(strategy, [mean])
    want = examples(0).mean(axis=0)
    return Proof("all replicas hold the mean of one device", [mean.numpy()], [want])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): the other number that each replica works out alone.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): variables that have a single copy, although you meant more.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a moving mean that no file keeps.
