# %% [markdown]
# # FM44. A metric function with one number for the batch makes `fit` report another number
#
# The same model and the same examples, and `evaluate` reports another error as soon as there are two devices. Nothing is raised,
# and the loss is right.
#
# ```text
# root mean squared error, reported on two devices 4.0, of all examples 5.0
# ```
#
# *Silent. Strategy and device count matter: each replica computes a number of its own. Both generations of Keras fail. Reported
# as [tensorflow#39268](https://github.com/tensorflow/tensorflow/issues/39268). The `TPUStrategy` reference (003) warns of a mean
# of means, and does not say that Keras takes one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm44",
    slug="fit_reports_another_number",
    title="A metric function with one number for the batch makes `fit` report another number",
    sees="`fit` or `evaluate` reports another metric on several devices, an accuracy above 1, or `nan`",
    fix="a metric function returns one value for each example; a metric class keeps a sum and a count",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"not so: evaluate reports the error of all examples",
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

session = clinic.open("fm44", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# What counts is the root of the mean squared error. You write it as a function of true and estimated values, as one writes a
# loss, and give it to `compile`. You believe that Keras calls it with the whole batch.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, Unavailable, build_strategy, experiment, figures

BATCH = 8
TRUE = [9.0] * 4 + [3.0] * 4  # the estimate is always 10: four are off by 1, and four by 7
# Keras 3 has no `evaluate` on several workers (fm41), and neither generation has one for a coordinator and arrays.
NO_EVALUATE = [("multi_worker", 3), ("parameter_server", 2), ("parameter_server", 3)]


def examples(count=BATCH):
    """What the model is given, which it returns, and what it should return."""
    wanted = np.resize(np.array(TRUE, "float32"), (count, 1))
    return np.full_like(wanted, 10.0), wanted


def rmse(wanted, found):
    return tf.sqrt(tf.reduce_mean(tf.square(wanted - found)))


def make_model(metrics, kind=tf.keras.Sequential):
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = kind([tf.keras.Input((1,)), dense])
    loss, stays = tf.keras.losses.MeanSquaredError(), tf.keras.optimizers.SGD(0.0)
    model.compile(optimizer=stays, loss=loss, metrics=metrics, jit_compile=False)
    return model


def evaluated(model, count=BATCH):
    """All that `evaluate` reports, by name."""
    rows, wanted = examples(count)
    return model.evaluate(rows, wanted, batch_size=BATCH, verbose=0, return_dict=True)


def reported(name, model, setup, count=BATCH):
    if (setup.strategy, setup.keras) in NO_EVALUATE:
        raise Unavailable(f"Keras {setup.keras} has no evaluate of arrays under {setup.strategy}.")
    return float(evaluated(model, count)[name])


def proof(model, setup):
    rows, wanted = examples()
    want = float(np.sqrt(np.mean(np.square(wanted - rows))))
    got = reported("rmse", model, setup)
    return Proof("evaluate reports the error of all examples", [got], [want], 1e-5)


# %%
@experiment
def broken(setup):
    with build_strategy(setup).scope():
        model = make_model([rmse])  # guilty: one number for all that a replica has
    return proof(model, setup)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Each replica calls the function with its own part of the batch, and Keras takes the mean of all values that come back. One value
# for each example gives the mean of all examples. One number gives a mean of the replicas' numbers: here the roots 1 and 7, with
# the mean 4. Even a plain mean is wrong where the last batch is split unevenly, and `nan` where a part is empty.
#
# A metric class has variables, and reading them adds up those of all replicas. A class that keeps a mean reports a sum of means:
# this is how an accuracy exceeds 1. A number that `test_step` returns without a metric is summed by Keras 2, averaged by
# Keras 3, and both report the last batch.
#
# Central storage has one copy for all replicas. In Keras 3 each of two replicas doubles there what earlier batches have counted,
# so where batches differ, Keras's own loss is wrong as well. See
# [`MeanMetricWrapper`](https://keras.io/api/metrics/metrics_wrappers).


# %%
def squares(wanted, found):
    """One value for each example."""
    return tf.square(wanted - found)


class KeepsMean(tf.keras.metrics.Metric):
    """The mean of all squares so far, brought up to date by each batch."""

    def __init__(self):
        super().__init__(name="kept")
        self.mean = self.add_weight(name="mean", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, wanted, found, sample_weight=None):
        values = squares(wanted, found)
        self.count.assign_add(tf.cast(tf.size(values), tf.float32))
        self.mean.assign_add(tf.reduce_sum(values - self.mean) / self.count)

    def result(self):
        return tf.identity(self.mean)


class OwnStep(tf.keras.Sequential):
    """Reports a number without a metric."""

    def test_step(self, data):
        return {"own": tf.reduce_mean(squares(data[1], self(data[0])))}


NAMES = {  # what is reported, under which name, and what it should be
    "loss of Keras": ("loss", 25.0),
    "class of Keras": ("class", 5.0),
    "function, value per example": ("squares", 25.0),
    "function, one number": ("rmse", 5.0),
    "class that keeps a mean": ("kept", 25.0),
    "test_step without a metric": ("own", 25.0),
}


def shares(setup):
    """What is reported under a setup in units of what it should be, one for each row of the picture."""
    with build_strategy(setup).scope():
        known = tf.keras.metrics.RootMeanSquaredError(name="class")
        model = make_model([known, squares, rmse, KeepsMean()])
        other = make_model(None, OwnStep)
    logs = evaluated(model, 2 * BATCH) | evaluated(other, 2 * BATCH)
    return [float(logs[name]) / right for name, right in NAMES.values()]


two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
PLACES = {"no strategy": alone, "mirrored x2": two}
PLACES["central\nstorage x2"] = two.but(strategy="central_storage")
FOUND = dict(zip(NAMES, zip(*map(shares, PLACES.values()))))
figures.numbers(FOUND, list(PLACES), [1.0] * len(PLACES), "Reported / right")

# %% [markdown]
# ## The fix
#
# Take a metric class that keeps sums and a count, and computes the number from them. Before:
#
# ```python
# import tensorflow as tf
#
# def rmse(wanted, found):
#     return tf.sqrt(tf.reduce_mean(tf.square(wanted - found)))
# with tf.distribute.MirroredStrategy().scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
#     model.compile(loss="mse", metrics=[rmse])
# found, wanted = tf.fill((4, 1), 10.0), tf.constant([[9.0], [9.0], [3.0], [3.0]])
# print(model.evaluate(found, wanted, batch_size=4, verbose=0)[1])  # 4.0
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# with tf.distribute.MirroredStrategy().scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
#     model.compile(loss="mse", metrics=[tf.keras.metrics.RootMeanSquaredError()])
# found, wanted = tf.fill((4, 1), 10.0), tf.constant([[9.0], [9.0], [3.0], [3.0]])
# print(model.evaluate(found, wanted, batch_size=4, verbose=0)[1])  # 5.0
# ```
#
# If the number is a mean over examples, return one value for each, as `squares` above does. In a class of your own, `add_weight`
# a sum and a count, and divide in `result`. In a `test_step` of your own, update metrics and return their results. A median
# cannot be put together from sums: compute it from `model.predict`.


# %%
@experiment
def fixed(setup):
    with build_strategy(setup).scope():
        model = make_model([tf.keras.metrics.RootMeanSquaredError(name="rmse")])  # repair
    return proof(model, setup)


session.proves(fixed)

# %%
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `default`: one replica has all examples, and the number is right.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) warns where it speaks of `reduce`:
#
# > Contrast this with computing reduce_mean to get a scalar value on each replica and this function to average those means, which
# > will weigh some values 1/8 and others 1/4.
#
# Keras does just that with a function that ends in `reduce_mean`.
#
# Other reports blame Keras's own metrics: an accuracy above 1 ([keras#19280](https://github.com/keras-team/keras/issues/19280),
# [#19340](https://github.com/keras-team/keras/issues/19340)), wrong values
# ([#19891](https://github.com/keras-team/keras/issues/19891)) and `nan`
# ([#21467](https://github.com/keras-team/keras/issues/21467)). They do not reproduce under `MirroredStrategy`, also if the last
# batch is split unevenly, as below. If the first one is, Keras 3 raises `Inputs to operation AddN … must have the same size`.

# %% tags=["claims"]
with build_strategy(two).scope():
    trained = make_model(["mae"])
rows, wanted = examples(15)
history = trained.fit(rows, wanted, batch_size=BATCH, shuffle=False, verbose=0).history
RIGHT = {"loss": np.mean(np.square(wanted - rows)), "mae": np.mean(np.abs(wanted - rows))}
for name, right in RIGHT.items():
    print(f"{name}: fit reports {history[name][0]:.3f}, of all examples {right:.3f}")

# %% [markdown]
# ## Exercise
#
# The error in percent is a plain mean. There are eleven examples, so the last batch has three. Change the function, so that
# `evaluate` reports the mean of all examples.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    def percent_off(wanted, found):
        return tf.reduce_mean(100 * tf.abs(wanted - found) / wanted)

    with build_strategy(setup).scope():
        model = make_model([percent_off])
    rows, wanted = examples(11)
    want = float(np.mean(100 * np.abs(wanted - rows) / wanted))
    got = reported("percent_off", model, setup, 11)
    return Proof("evaluate reports the error in percent of all examples", [got], [want], 1e-3)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    def percent_off(wanted, found):
        return 100 * tf.abs(wanted - found) / wanted

    with build_strategy(setup).scope():
        model = make_model([percent_off])
    rows, wanted = examples(11)
    want = float(np.mean(100 * np.abs(wanted - rows) / wanted))
    got = reported("percent_off", model, setup, 11)
    return Proof("evaluate reports the error in percent of all examples", [got], [want], 1e-3)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): the same mean of means in an evaluation loop of your own.
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): a mean per replica in the loss, so that training changes.
# - [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb): a count that is wrong since it was made outside the scope.
# - [fm39 per_replica_on_host](fm39_per_replica_on_host.ipynb): values of all replicas, read without Keras.
