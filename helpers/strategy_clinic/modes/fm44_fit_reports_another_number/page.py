# %% [markdown]
# # FM44. A custom metric function reports another value on several devices
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `loss: 25.0  root mean squared error: 4.0` | `fit` on two, four or eight devices; 5.0 on one | 2, 3 |
#
# Keras calls a metric function once for each replica and reports the mean of what it returns. A function that returns one
# number for its examples, such as a root, a recall or an F1 score, then reports another value.
#
# *Wrong result without an error, on Keras 2 and 3, under `MirroredStrategy`, central storage and an emulated TPU.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm44",
    slug="fit_reports_another_number",
    title="A custom metric function reports another value on several devices",
    sees="`fit` or `evaluate` reports another metric on several devices, an accuracy above 1, or `nan`",
    fix="use a metric that keeps sums and counts and divides them in `result`; a function of your own must compute the value of each example from it alone",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'loss: 25\.0  root mean squared error: 4\.0'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="loss: 25.0  root mean squared error: 5.0",
    exercise_prints="recall: 0.75",
    unavailable={
        "multi_worker": "`evaluate` of Keras 3 does not run on several workers",
        "parameter_server": "`evaluate` does not accept arrays there",
    },
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
# ## The program
#
# The model returns its input, 10. Eight labels are 9 and eight are 3, so the root mean squared error is 5.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Use a metric class, such as `RootMeanSquaredError`, `F1Score` or `MeanIoU`. It keeps sums and counts, and divides only when the
# value is read.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If Keras has no such class:
#
# - If the value is a mean over examples, return one value for each example, and no `tf.reduce_mean`.
# - In a class of your own, add up numerator and denominator with `assign_add`, and divide in `result`. A class that stores a mean
#   with `assign` reports the sum of the replicas' means.
# - In a `test_step` of your own, update metrics and return their results.
#
# ## Why
#
# Keras's [guide](https://keras.io/api/metrics/#creating-custom-metrics) asks for an array with one value for each example.
#
# Each replica computes the metric for its part of the batch. Here the parts have the roots 1 and 7, and Keras reports their
# mean, 4. The same error occurs without a strategy if there are several batches, because Keras averages over batches, too.
#
# A metric class has variables, one copy for each replica, and reading a variable adds up its copies. That is right for sums and
# counts. From a sum of means an accuracy can exceed 1. A division by a count that is zero in one part gives `nan`.
#
# The table shows the values for several metrics, and the picture what replicas hold of one: a total and a count. See
# [`MeanMetricWrapper`](https://keras.io/api/metrics/metrics_wrappers), which Keras puts around a function.

# %% tags=["figure"]
# The program with four metrics, on one device and on two.
from strategy_clinic import figures

LINE = '    model.compile(loss="mse", metrics=[rmse])  # wrong'
STORES_A_MEAN = """
    class StoresMean(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__()
            self.mean = self.add_weight(name="mean", initializer="zeros")

        def update_state(self, labels, predictions, sample_weight=None):
            self.mean.assign(tf.reduce_mean(tf.square(labels - predictions)))

        def result(self):
            return tf.identity(self.mean)

"""
COMPILE = "    model.compile(loss='mse', metrics=[{}])"
METRICS = {
    "RootMeanSquaredError()": COMPILE.format("tf.keras.metrics.RootMeanSquaredError()"),
    "function: root": COMPILE.format("rmse"),
    "function: value per example": COMPILE.format("lambda a, b: tf.square(a - b)"),
    "class that stores a mean": STORES_A_MEAN + COMPILE.format("StoresMean()"),
}
two = session.setup.but(strategy="mirrored", devices=2)
one = two.but(devices=1)
printed = session.prints(session.variants("broken", LINE, METRICS), [one, two])
VALUES = {name: [text.split()[-1] for text in row] for name, row in printed.items()}
BAD = {right_and_wrong[1] for right_and_wrong in VALUES.values()} - {
    right for right, _ in VALUES.values()
}
figures.words(VALUES, ["mirrored x1", "mirrored x2"], BAD, "What is reported?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# [tensorflow#39268](https://github.com/tensorflow/tensorflow/issues/39268) has a function that ends in `reduce_mean`. Reports
# on Keras's own metrics, of an accuracy above 1 ([keras#19280](https://github.com/keras-team/keras/issues/19280),
# [#19340](https://github.com/keras-team/keras/issues/19340)), wrong values
# ([#19891](https://github.com/keras-team/keras/issues/19891)) and `nan`
# ([#21467](https://github.com/keras-team/keras/issues/21467)), do not reproduce on mirrored CPU devices with Keras 3.15, as
# here with a last batch of seven examples:

# %% tags=["figure"]
# What the fixed program reports for 23 examples in two batches on two devices, and what is right.
BATCH = "labels = tf.constant([[9.0]] * 8 + [[3.0]] * 8)"
UNEVEN = (
    BATCH
    + "\ninputs = tf.fill((23, 1), 10.0)\nlabels = tf.concat([labels, tf.fill((7, 1), 3.0)], 0)"
)
central = two.but(strategy="central_storage", keras=3)
((text, twice),) = session.prints(
    session.variants("fixed", BATCH, {"23 examples": UNEVEN}), [two, central]
).values()
print("mirrored x2        ", text)
print("right               loss:", round((8 * 1 + 15 * 49) / 23, 3))
print("central storage x2 ", twice)

# %% [markdown]
# ## Try other setups
#
# With one device the value is right.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, under central storage, and on the other version of Keras:

# %% tags=["table"]
OTHERS = [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table([one, two, two.but(devices=4), *OTHERS])

# %% [markdown]
# In Keras 3 under `CentralStorageStrategy`, `fit` and `evaluate` count earlier batches again: metrics and losses are wrong,
# as above, and weights are right.
#
# What Keras 3 shows after each batch is the mean of the replicas' metrics: a `RootMeanSquaredError` of 0.555 on two where one
# device has 0.558. That of the epoch is right. `upstream/logs_of_each_batch.md` is ready to be reported.
#
# ## Exercise
#
# The model finds six of eight positive examples, so the recall is 0.75. Change the program so that it prints this on one, two,
# four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM19](fm19_partial_last_batch.ipynb): the same mean of means in an evaluation loop of your own.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): a mean per replica in the loss, which changes the training.
# - [FM39](fm39_per_replica_on_host.ipynb): how to combine the values of all replicas without Keras.
# - [FM23](fm23_variable_outside_scope.ipynb): a count that is wrong because it was created outside the scope.
