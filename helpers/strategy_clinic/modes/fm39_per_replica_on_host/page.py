# %% [markdown]
# # FM39. `'PerReplica' object has no attribute 'numpy'`: the result of `strategy.run` is not a tensor
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `AttributeError: 'PerReplica' object has no attribute 'numpy'` | `losses.numpy()` | 2, 3 |
# | `TypeError: float() argument must be a string or a real number, not 'PerReplica'` | `float(losses)` | 2, 3 |
# | `TypeError: unsupported operand type(s) for +: 'PerReplica' and 'float'` | `losses + 1.0`; `f"{losses:.2f}"`: `unsupported format string passed to PerReplica.__format__` | 2, 3 |
# | `ValueError: It looks like you are using a PerReplica object while not inside a replica context, which is not supported.` | `tf.reduce_mean(losses)`; `metric.update_state(losses)`, on Keras 2 `The output of a metric function can only be a single Tensor` | 2, 3 |
# | `ValueError: Attempt to convert a value (PerReplica:{…` | `tf.constant(losses)`; from `fit` of Keras 3 on several workers: see FM78 | 2, 3 |
# | no message: `loss: 0.5` | `float(losses)` on several workers with one device each: the share of one worker; 1.0 is right | 2, 3 |
#
# With two or more devices, `strategy.run` returns one value for each replica, in a `PerReplica` object. With one device it
# returns the tensor itself, so the same lines work there.
#
# *Raises on Keras 2 and 3, under every strategy with several replicas in one process. With one replica in each of several
# workers, the result is wrong without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm39",
    slug="per_replica_on_host",
    title="`'PerReplica' object has no attribute 'numpy'`: the result of `strategy.run` is not a tensor",
    sees="`'PerReplica' object has no attribute 'numpy'`, or `float()` refuses one, as soon as there are two devices",
    fix='`strategy.reduce("SUM", losses, axis=None)` for shares of a loss, `"MEAN"` for means of equal parts, `strategy.gather(outputs, axis=0)` for outputs',
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "TypeError",
            r"float\(\) argument must be .* not 'PerReplica'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
        Symptom(
            "SilentFailure",
            r"it prints 'loss: 0\.5', and right is 'loss: 1\.0'",
            strategies=("multi_worker",),
        ),
    ),
    prints="loss: 1.0",
    exercise_prints="largest value: 15",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so no batch is divided"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm39", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# An evaluation loop prints the loss of each batch. On one device it prints `1.0`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# `strategy.reduce` combines the values of all replicas into one tensor. Here each replica returns its share of the loss of the
# whole batch, so the loss is their sum. In the `tf.function` it works too: `return strategy.reduce(...)` in `test_step`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Which reduction is right depends on what a replica returns:
#
# - `"SUM"` if it returns its share of the loss of the whole batch: `tf.nn.compute_average_loss` with `global_batch_size`, or a
#   loss object of Keras 3, which divides by the number of replicas under a strategy.
# - `"MEAN"` if it returns the mean of its own examples, and all parts of the batch are equally large.
#
# The table shows the reported loss. The loss of the batch is 1.0.

# %% tags=["figure"]
# The program with three ways to compute the loss, each combined with SUM and with MEAN.
from strategy_clinic import figures

LINE = "    loss = tf.nn.compute_average_loss(errors, global_batch_size=16)"
LOSSES = {
    "compute_average_loss": LINE,
    "tf.reduce_mean": "    loss = tf.reduce_mean(errors)",
}
if session.setup.keras == 3:
    LOSSES["Keras 3 MeanSquaredError()"] = (
        "    loss = tf.keras.losses.MeanSquaredError()(labels, model(inputs))"
    )
two = session.setup.but(strategy="mirrored", devices=2)
one = two.but(devices=1)
SUMS = session.variants("fixed", LINE, LOSSES)
MEANS = {way: text.replace('"SUM"', '"MEAN"') for way, text in SUMS.items()}
printed = [session.prints(texts, [two]) for texts in (SUMS, MEANS)]
REPORTED = {way: [float(row[way][0].split()[-1]) for row in printed] for way in LOSSES}
figures.numbers(REPORTED, ['"SUM"', '"MEAN"'], [1.0, 1.0], "Which loss is printed?")

# %% [markdown]
# Both reductions also accept the tensor of a single replica, so the program needs no second version. Three other ways:
#
# - `strategy.experimental_local_results(losses)` returns a tuple with the value of each replica of this process.
# - `strategy.gather(rows, axis=0)` joins rows that the replicas return, or the parts of a distributed batch, into one tensor.
# - A `tf.keras.metrics.Mean` that is created in the scope and updated in the step adds up all replicas and all batches.
#
# Do not read `losses.values`: the tensor of a single replica has no such attribute.
#
# ## Why
#
# TensorFlow cannot know whether you want the sum, the mean or all of the values. A `PerReplica` is therefore a container and no
# tensor: it has no `numpy`, `dtype` or `shape`, and no arithmetic. A batch of a distributed dataset is such a container, too.
#
# With several workers of one replica each, `strategy.run` returns a tensor in each of them, and `float` returns the share of
# one worker. `strategy.reduce` combines all workers. See
# [`DistributedValues`](https://www.tensorflow.org/api_docs/python/tf/distribute/DistributedValues).
#
# `fit` reduces its own losses. If `Attempt to convert a value (PerReplica:{…` comes from `fit` under
# `MultiWorkerMirroredStrategy`, see [FM78](fm78_fit_on_several_workers.ipynb).

# %% tags=["figure"]
# The program with other lines in the place of float(losses), on one device and on two.
LINE = '    print("loss:", float(losses))  # wrong: one loss for each replica'
CODE = {
    "losses.numpy()": "losses.numpy()",
    "losses + 1.0": "losses + 1.0",
    "tf.reduce_mean(losses)": "tf.reduce_mean(losses)",
    'strategy.reduce("SUM", ...)': 'strategy.reduce("SUM", losses, axis=None)',
    "experimental_local_results": "strategy.experimental_local_results(losses)",
}
LINES = session.variants("broken", LINE, {name: f"    {code}" for name, code in CODE.items()})
printed = session.prints(LINES, [one, two])  # nothing, or the class of an error
WORKS = {name: [not word for word in row] for name, row in printed.items()}
figures.grid(WORKS, ["mirrored x1", "mirrored x2"], "works", "raises", "Does the line work?")

# %% tags=["figure"]
# What each replica held in a step of both programs and how they ended, beside one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device the failure is gone. With `multi_worker` nothing is raised, and each worker prints its own share.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one and two devices, under three other strategies, and on the other version of Keras:

# %% tags=["table"]
OTHERS = [two.but(strategy="central_storage"), two.but(strategy="multi_worker")]
OTHERS += [two.but(strategy="tpu_traced", devices=8), two.but(keras=session.setup.other_keras)]
session.table([one, two, *OTHERS])

# %% [markdown]
# ## Exercise
#
# This program looks for the largest value in a batch of a distributed dataset. Change it so that it prints `15` on any number
# of devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the same division, in the loss that is differentiated.
# - [FM19](fm19_partial_last_batch.ipynb): a mean over replicas that have different numbers of examples.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): the same `strategy.reduce`, called inside the step.
# - [FM20](fm20_gather_misuse.ipynb): what `strategy.gather` accepts.
# - [FM22](fm22_non_tensor_in_run.ipynb): a step that returns objects which are not tensors.
