# %% [markdown]
# # FM44. A metric that keeps a mean makes `fit` report another number
#
# The same model and the same examples, and `evaluate` reports another error with every device that is added. An accuracy gets
# larger than one, or the number is `nan`. Nothing is raised.
#
# ```text
# error reported on two devices 5.20, error of all examples 2.60
# ```
#
# *Silent. Strategy and device count matter: a number of each replica has to become one. Both generations of Keras fail, some ways
# differently. The `TPUStrategy` reference (003) warns of a mean of means, and does not say where Keras takes one.*

# %% tags=["declaration"]
from helpers import FailureMode, Symptom

MODE = FailureMode(
    id="fm44",
    slug="fit_reports_another_number",
    title="A metric that keeps a mean makes `fit` report another number",
    sees="`fit` or `evaluate` reports another loss or accuracy with every device, more than 1.0, or `nan`",
    fix="a metric class keeps a sum and a count; a metric function returns one value for each example",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"evaluate reports the error of all examples",
            strategies=("mirrored", "tpu_traced", "tpu"),
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
import helpers

clinic = helpers.open("fm44", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The model is judged by an error that Keras does not have, so you write a metric. It keeps a running mean, which is right after
# every batch. You believe that `evaluate` reports the error of all examples.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures

ROWS = 16


def examples(count=ROWS):
    numbers = np.random.default_rng(0)
    rows, wanted = numbers.normal(size=(ROWS, 3)), numbers.normal(size=(ROWS, 1))
    return rows[:count].astype("float32"), wanted[:count].astype("float32")


def error_of_rows(wanted, found):
    return tf.reduce_mean(tf.square(wanted - found), axis=-1)


class Error(tf.keras.metrics.Metric):
    """The mean error of all rows, from two variables."""

    def __init__(self, name="error"):
        super().__init__(name=name)
        self.kept = self.add_weight(name="kept", initializer="zeros")
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, wanted, found, sample_weight=None):
        errors = error_of_rows(wanted, found)
        self.seen.assign_add(tf.cast(tf.size(errors), tf.float32))
        self.keep(errors)


class KeepsMean(Error):
    def keep(self, errors):
        self.kept.assign_add(tf.reduce_sum(errors - self.kept) / self.seen)

    def result(self):
        return tf.identity(self.kept)


class KeepsSum(Error):
    def keep(self, errors):
        self.kept.assign_add(tf.reduce_sum(errors))

    def result(self):
        return self.kept / self.seen


def make_model(strategy, metric=None, kind=tf.keras.Sequential):
    """A linear model, compiled in scope with the metric, or the list of them, that a function makes there."""
    with strategy.scope():
        start = tf.keras.initializers.Constant(0.5)
        model = kind([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer=start)])
        made = as_list(metric)
        model.compile(loss=tf.keras.losses.MeanSquaredError(), metrics=made, jit_compile=False)
    return model


def as_list(metric):
    made = metric() if metric else None
    return [made] if isinstance(made, tf.keras.metrics.Metric) else made


def reported(model, count=ROWS, batch=ROWS):
    """What `evaluate` says of some examples, by name."""
    rows, wanted = examples(count)
    return model.evaluate(rows, wanted, batch_size=batch, verbose=0, return_dict=True)


def error_of_all(count=ROWS):
    """The same error without any strategy and any Keras."""
    rows, wanted = examples(count)
    return float(np.mean(np.square(rows.sum(axis=1, keepdims=True) * 0.5 - wanted)))


def proof(model):
    what = "evaluate reports the error of all examples"
    return Proof(what, [reported(model)["error"]], [error_of_all()], 1e-5)


# %%
@experiment
def broken(setup):
    metric = KeepsMean  # guilty: the means of the replicas are added up
    return proof(make_model(build_strategy(setup), metric))


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A metric has variables. Each replica writes its own copy, and reading *adds the copies up*. A sum and a count may be added up. A
# mean may not: the result grows with the number of replicas.
#
# A metric may be a function. Keras averages what it returns, each value with the same weight. One value per example is right.
# A mean of the batch counts once per replica, whatever the size of its part, and the mean of an empty part is `nan`.
#
# A `test_step` of your own may return a number without a metric. Keras 2 adds up those of the replicas, Keras 3 averages them,
# and both report the last batch.
#
# Central storage has one copy for all. Keras 3 adds to a variable by reading it and assigning the sum, and the assignments of all
# replicas are added: from the second batch on its own loss is wrong too.
#
# The picture divides the number reported by that of all examples, thirteen in batches of eight. See
# [the guide to Keras metrics](https://keras.io/api/metrics/#creating-custom-metrics).


# %%
def per_batch(wanted, found):
    return tf.reduce_mean(error_of_rows(wanted, found))


def all_kinds():
    known = tf.keras.metrics.MeanSquaredError(name="known")
    return [known, KeepsSum("sum"), KeepsMean("mean"), error_of_rows, per_batch]


class OwnStep(tf.keras.Sequential):
    """Reports a number without a metric."""

    def test_step(self, data):
        return {"own": per_batch(data[1], self(data[0]))}


NAMES = {
    "loss of Keras": "loss",
    "metric of Keras": "known",
    "class, keeps a sum": "sum",
    "class, keeps a mean": "mean",
    "function, value per example": "error_of_rows",
    "function, value per batch": "per_batch",
    "test_step, no metric": "own",
}


def ratios(setup):
    """What is reported in units of the error of all examples, one for each row of the picture."""
    strategy, few = build_strategy(setup), {"count": 13, "batch": 8}
    logs = reported(make_model(strategy, all_kinds), **few)
    logs |= reported(make_model(strategy, kind=OwnStep), **few)
    return [float(logs[name]) / error_of_all(13) for name in NAMES.values()]


two = clinic.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
PLACES = {"no strategy": alone, "mirrored x2": two}
PLACES["central\nstorage x2"] = two.but(strategy="central_storage")
FOUND = dict(zip(NAMES, zip(*map(ratios, PLACES.values()))))
figures.numbers(FOUND, list(PLACES), [1.0] * len(PLACES), "Reported / of all examples")

# %% [markdown]
# ## The fix
#
# In a metric class keep a sum and a count, and divide in `result`. Let a function return one value for each example. Before, with
# three examples on two devices:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# with tf.distribute.MirroredStrategy().scope():
#     layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
#     model = tf.keras.Sequential(layers)
#     model.compile(loss="mse", metrics=[lambda wanted, found: tf.reduce_mean(tf.square(found))])
# data = np.array([[0.0], [0.0], [3.0]])
# print(model.evaluate(data, data, batch_size=2, verbose=0)[1])  # nan
# ```
#
# After:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# with tf.distribute.MirroredStrategy().scope():
#     layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
#     model = tf.keras.Sequential(layers)
#     model.compile(loss="mse", metrics=[lambda wanted, found: tf.reduce_mean(tf.square(found), axis=-1)])
# data = np.array([[0.0], [0.0], [3.0]])
# print(model.evaluate(data, data, batch_size=2, verbose=0)[1])  # 3.0
# ```
#
# In a step of your own update a `tf.keras.metrics.Mean` with the values of all examples, and return the results of all of
# `self.metrics`: only then does Keras 3 read them after the last batch. Where a number cannot be put together from parts, as a
# median, `predict` all examples and compute it on the host.


# %%
@experiment
def fixed(setup):
    metric = KeepsSum  # repair: a sum and a count may be added up
    return proof(make_model(build_strategy(setup), metric))


clinic.proves(fixed)

# %%
SETUPS = [alone, two, two.but(devices=4), two.but(strategy="central_storage")]
SETUPS += [two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device: the number is right. Set four or eight: it grows with them.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) warns where it speaks of `reduce`:
#
# > Contrast this with computing reduce_mean to get a scalar value on each replica and this function to average those means, which
# > will weigh some values 1/8 and others 1/4.
#
# That is what Keras does with what a metric function returns. Reports blame Keras for more: wrong losses and metrics of its
# own, and an accuracy of 3.57. Those were bugs of early Keras 3. In the versions of this record its loss and its metrics agree
# with all examples under `MirroredStrategy`, as the first rows of the picture show, and not under central storage.

# %% [markdown]
# ## Exercise
#
# This accuracy is kept as a share of all examples. On two devices `evaluate` reports more than one. Change the class so that it
# reports the accuracy of all examples.


# %% tags=["exercise"]
def hits_of(wanted, found):
    return tf.reduce_sum(tf.cast((wanted > 0) == (found > 0), tf.float32))


def accuracy_of_all():
    rows, wanted = examples()
    return np.mean((rows.sum(axis=1, keepdims=True) > 0) == (wanted > 0))


@experiment
def attempt(setup):
    class Accuracy(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="accuracy")
            self.share = self.add_weight(name="share", initializer="zeros")
            self.seen = self.add_weight(name="seen", initializer="zeros")

        def update_state(self, wanted, found, sample_weight=None):
            hits, count = hits_of(wanted, found), tf.cast(tf.size(wanted), tf.float32)
            self.seen.assign_add(count)
            self.share.assign((self.share * (self.seen - count) + hits) / self.seen)

        def result(self):
            return tf.identity(self.share)

    told = reported(make_model(build_strategy(setup), Accuracy))["accuracy"]
    return Proof("evaluate reports the accuracy of all examples", [told], [accuracy_of_all()], 1e-5)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    class Accuracy(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="accuracy")
            self.hits = self.add_weight(name="hits", initializer="zeros")
            self.seen = self.add_weight(name="seen", initializer="zeros")

        def update_state(self, wanted, found, sample_weight=None):
            self.hits.assign_add(hits_of(wanted, found))
            self.seen.assign_add(tf.cast(tf.size(wanted), tf.float32))

        def result(self):
            return self.hits / self.seen

    told = reported(make_model(build_strategy(setup), Accuracy))["accuracy"]
    return Proof("evaluate reports the accuracy of all examples", [told], [accuracy_of_all()], 1e-5)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): the same mean of means in an evaluation loop of your own.
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): a loss that is divided wrongly, so that training changes.
# - [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb): a count that is wrong since it was made outside the scope.
# - [fm39 per_replica_on_host](fm39_per_replica_on_host.ipynb): values of all replicas, read without Keras.
