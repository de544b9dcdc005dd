# %% [markdown]
# # FM35. Restoring a model before it is built loses its first variable
#
# The model is made, the checkpoint restored, its assert is content, and then the first batch builds the layers. One kernel is
# random.
#
# *Silent on Keras 3; on Keras 2 it works. No strategy changes it. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm35",
    slug="restore_before_build",
    title="Restoring a model before it is built loses its first variable",
    sees="a restored model predicts nonsense, although `restore` and its assert were content",
    fix="call the model on a batch before `restore`, and assert after it",
    document="001",
    switches=("keras",),
    symptoms=(
        Symptom("SilentFailure", r"the predictions of the restored model differ", keras=(3,)),
    ),
    claims=(
        Claim("003-C32", "restoring belongs in the strategy's scope if it makes variables", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm35", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# A model of your own class has no variables before its first batch. That is no reason to wait, says the guide: restoring is
# deferred, and each value waits in the checkpoint until its variable is made. So you restore first, while the path is at hand.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures

BATCH = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


class Network(tf.keras.Model):
    """It has no variables before its first batch tells it how wide the data is."""

    def __init__(self):
        super().__init__()
        self.first = tf.keras.layers.Dense(4, activation="tanh")
        self.second = tf.keras.layers.Dense(2)

    def call(self, inputs):
        return self.second(self.first(inputs))


def build(strategy, model):
    """What the first batch does, whoever sends it."""
    with strategy.scope():
        model(tf.constant(BATCH))


def predict(model):
    return np.asarray(model(tf.constant(BATCH)))


# %%
def start(strategy):
    with strategy.scope():
        model = Network()
    return model, tf.train.Checkpoint(model=model)


def save_yesterday(strategy, folder):
    """Saves a model whose weights are not those of a new one, and tells what it predicts."""
    model, checkpoint = start(strategy)
    build(strategy, model)
    model.set_weights([weight + 0.5 for weight in model.get_weights()])
    return checkpoint.save(f"{folder}/training"), predict(model)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        path, before = save_yesterday(strategy, folder)
        model, checkpoint = start(strategy)
        status = checkpoint.restore(path)  # guilty: the layers have no variables yet
        status.assert_existing_objects_matched()
        build(strategy, model)
    after = predict(model)
    checks.assert_same_values("the predictions of the restored model", before, after)
    return Proof("the restored model predicts what it did yesterday", [after], [before])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Keras 3 builds a model without a `build` of its own in a rehearsal: it first calls the model on symbols. The variables of a
# rehearsal cannot be written to. The checkpoint hands the first of them its value, fails, and has crossed the value off its list.
# Keras takes the failure for a model that cannot be rehearsed, and sends the real batch. The kernel is made a second time, and
# its value has been handed out. Everything after it is made once and arrives.
#
# So you lose whatever is made first, kernel or not. The model lists it twice, and the only hint is that `fit` warns of a kernel
# without gradients. A model with a `build` needs no rehearsal.
#
# The early assert asks about the variables *that exist*: none. The picture restores three models. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint#delayed_restorations).


# %%
class WithBuild(Network):
    """The same model, and a `build` that builds its layers."""

    def build(self, input_shape):
        self.first.build(input_shape)
        self.second.build((*input_shape[:-1], 4))
        self.built = True


def weights_of(model):
    return {
        "kernel of the first layer": model.first.kernel,
        "bias of the first layer": model.first.bias,
        "kernel of the second layer": model.second.kernel,
        "bias of the second layer": model.second.bias,
    }


def restored(make_model, call_first):
    """A model saved with the weights of no new one, and one that was restored before or after its first batch."""
    saved, model = make_model(), make_model()
    saved(tf.constant(BATCH))
    saved.set_weights([weight + 0.5 for weight in saved.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=saved).save(f"{folder}/training")
        if call_first:
            model(tf.constant(BATCH))
        tf.train.Checkpoint(model=model).restore(path)
        model(tf.constant(BATCH))
    return saved, model


def arrived(saved, model):
    pairs = zip(weights_of(saved).values(), weights_of(model).values())
    return [np.array_equal(np.asarray(one), np.asarray(two)) for one, two in pairs]


WAYS = {
    "restored first": restored(Network, call_first=False),
    "has a build": restored(WithBuild, call_first=False),
    "called first": restored(Network, call_first=True),
}
columns = [arrived(*models) for models in WAYS.values()]
ARRIVED = dict(zip(weights_of(WAYS["called first"][0]), zip(*columns)))
figures.grid(ARRIVED, list(WAYS), "restored", "lost")

# %% [markdown]
# ## The fix
#
# Send one batch through the model, in scope, and only then restore: the assert has something to look at. Zeros of the right shape
# will do. Or give the class a `build`. Where you can do neither, keep what `restore` returns and call
# `checks.assert_restored(status)` after the first batch, not before it.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        path, before = save_yesterday(strategy, folder)
        model, checkpoint = start(strategy)
        build(strategy, model)  # repair
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()
    after = predict(model)
    checks.assert_same_values("the predictions of the restored model", before, after)
    return Proof("the restored model predicts what it did yesterday", [after], [before])


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
# Choose Keras 2 and the failure is gone: there, restoring and building go in either order. No strategy brings it back.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference of document 003 says that restoring may belong in the scope, as it may create variables. It creates
# one, the counter of saves, which goes where `restore` stands. Those of an unbuilt model go where the first batch stands: it is
# the batch that belongs in the scope, and, now you know, above the `restore`.


# %% tags=["claims"]
def created(restore_inside, build_inside):
    """Which variables are the strategy's: the counter that restoring makes, and those that the first batch makes."""
    distributed = build_strategy(clinic.setup.but(strategy="mirrored", devices=2))
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    with tempfile.TemporaryDirectory() as folder:
        path, _ = save_yesterday(alone, folder)
        model, checkpoint = start(alone)
        with (distributed if restore_inside else alone).scope():
            checkpoint.restore(path)
        build(distributed if build_inside else alone, model)
    known = distributed.extended.variable_created_in_scope
    weights = [checks.variable_of(weight) for weight in model.weights]
    return known(checkpoint.save_counter), all(known(weight) for weight in weights)


clinic.judges(
    {
        "003-C32": [
            created(restore_inside=True, build_inside=False) == (True, False),
            created(restore_inside=False, build_inside=True) == (False, True),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script asks a manager for the newest checkpoint, and starts anew if there is none, which is how a job survives being
# killed. It also gives this model a new embedding each time. Add one line.


# %%
class Scores(tf.keras.Model):
    """Words in, one score for each out."""

    def __init__(self):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(5, 3)
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(self.embedding(inputs))


def manager_of(model, folder):
    checkpoint = tf.train.Checkpoint(model=model)
    return tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)


# %% tags=["exercise"]
@experiment
def attempt(setup):
    with tempfile.TemporaryDirectory() as folder, build_strategy(setup).scope():
        words, killed, model = tf.constant([[0, 1, 2]]), Scores(), Scores()
        before = np.asarray(killed(words))
        manager_of(killed, folder).save()
        manager_of(model, folder).restore_or_initialize()
        after = np.asarray(model(words))
    return Proof("the new model scores as the killed one did", [after], [before])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    with tempfile.TemporaryDirectory() as folder, build_strategy(setup).scope():
        words, killed, model = tf.constant([[0, 1, 2]]), Scores(), Scores()
        before = np.asarray(killed(words))
        manager_of(killed, folder).save()
        model(words)
        manager_of(model, folder).restore_or_initialize()
        after = np.asarray(model(words))
    return Proof("the new model scores as the killed one did", [after], [before])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): the same order of things, in an optimizer.
# - [fm06 architecture_changed](fm06_architecture_changed.ipynb): other restores that are content with a part of the model.
