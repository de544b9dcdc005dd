# %% [markdown]
# # FM38. `BatchNormalization` on several devices: each replica keeps its own moving mean
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `moving mean: [1.]  variance: [0.]` | two devices: the statistics of the first replica; [2.] and [1.] on one | 3 |
# | no message: `moving mean: [2.]  variance: [0.]` | two devices: the mean over both replicas | 2 |
# | `ValueError: You must specify an aggregation method to update a AggregatingVariable in Replica Context` | `CentralStorageStrategy` | 3 |
#
# Each replica normalises with the mean and variance of its own part of the batch, and updates its own copy of the moving
# mean and variance.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica. Central storage raises on
# Keras 3.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm38",
    slug="replica_state_diverges",
    title="`BatchNormalization` on several devices: each replica keeps its own moving mean",
    sees="a saved model has the statistics of one replica's data, and each replica predicts something else",
    fix="`BatchNormalization(synchronized=True)`; for a variable of your own, `aggregation=` when it is created",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'moving mean: \[1\.\]  variance: \[0\.\]'",
            strategies=("mirrored", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
            since="keras 3.10",
        ),
        Symptom(
            "SilentFailure",
            r"it prints 'moving mean: \[2\.\]  variance: \[0\.\]'",
            strategies=("mirrored", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
            until="keras 3.10",
        ),
        Symptom(
            "SilentFailure",
            r"it prints 'moving mean: \[2\.\]  variance: \[0\.\]'",
            strategies=("mirrored", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(2,),
        ),
    ),
    prints="moving mean: [2.]  variance: [1.]",
    exercise_prints="mean: 7.5",
    unavailable={
        "central_storage": "batch normalisation of Keras 3 raises there, synchronized or not",
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "its workers take their steps one by one, so no batch is divided",
    },
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
# ## The program
#
# `fit` processes one batch of sorted examples: eight are 1 and eight are 3. With `momentum=0.0`, the moving statistics are those
# of the last batch. On one device it prints the mean `[2.]` and the variance `[1.]`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# With `synchronized=True` the replicas compute the mean and variance of the whole batch together. It costs an all-reduce for
# each layer and step. Under central storage of Keras 3 this layer raises, too: use `MirroredStrategy` there.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Not every model needs this. With shuffled data and enough examples per replica the difference is small: with 32 examples per
# replica, the moving mean was off by 0.02 standard deviations in one measurement, and by 0.01 on one device. A classifier of a
# thousand shuffled rows came to the same test loss (0.2 % apart, with a spread of 0.5 %) with the statistics of four replicas as
# with those of the first. It matters for small parts (fewer than about 16 examples), sorted files, and if each device gets other
# classes.
#
# For a variable of your own, say how the values of the replicas are combined when you create it: `tf.Variable(value,
# aggregation=tf.VariableAggregation.MEAN)`. The parts must have the same size.
#
# Call this check before you save. It raises if the copies of a variable differ.

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_replicas_agree))

# %% [markdown]
# ## Why
#
# A variable of the scope has one copy on each device, and each replica updates and uses its own.
#
# Keras 3 creates the moving statistics with `VariableAggregation.NONE`: each copy keeps its value, and a reader or a file gets the
# first. Central storage has one copy for all replicas, and refuses an update without an aggregation. Keras 2 creates them with
# `VariableSynchronization.ON_READ` and `VariableAggregation.MEAN`: a reader or a file gets the mean of the copies. That is the
# right moving mean, but not the right variance, because it leaves out the differences between the replicas.
#
# The table shows how much the order of the examples matters, and the picture what the replicas held. The losses differ from
# that of one device for the same reason: they are normalized with the statistics of a part. See
# [`BatchNormalization`](https://keras.io/api/layers/normalization_layers/batch_normalization/), argument `synchronized`.

# %% tags=["figure"]
# Both programs with sorted and with mixed examples, on two devices.
from strategy_clinic import figures

LINE = "examples = tf.constant([[1.0]] * 8 + [[3.0]] * 8)"
ORDERS = {"sorted": LINE, "mixed": "examples = tf.constant([[1.0], [3.0]] * 8)"}
two = session.setup.but(strategy="mirrored", devices=2)
one = two.but(devices=1)
STATISTICS = {}
for subject, layer in (("broken", "plain layer"), ("fixed", "synchronized")):
    printed = session.prints(session.variants(subject, LINE, ORDERS), [two])
    for order, (text,) in printed.items():
        mean, variance = (float(part.split("]")[0]) for part in text.split("[")[1:])
        STATISTICS[f"{layer}, {order} examples"] = [mean, variance]
figures.numbers(STATISTICS, ["mean", "variance"], [2.0, 1.0], "Statistics of two devices")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device the failure is gone. On Keras 2 the mean is right and the variance is too small.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, and on two devices with the other version of Keras:

# %% tags=["table"]
session.table([one, two, two.but(devices=4), two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program stores the mean of its inputs in a variable of its own, and prints the mean of one replica. Change how the
# variable is created, so that it prints `7.5` on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): a loss that each replica computes from its own examples.
# - [FM44](fm44_fit_reports_another_number.ipynb): metrics that each replica computes from its own examples.
# - [FM23](fm23_variable_outside_scope.ipynb): a running mean with one copy, which every replica updates.
# - [FM05](fm05_untracked_variable.ipynb): a moving mean that no file contains.
