# %% [markdown]
# # FM15. `merge_call called while defining a new graph`: a condition around `apply_gradients`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` RuntimeError: `merge_call` called while defining a new graph or a tf.function. … or if the function `fn` uses a control flow statement which contains a synchronization point in the body. … `` | `apply_gradients` in `tf.cond` or `if`, in a replica | 2, 3 |
# | `ValueError: You must specify an aggregation method to update a MirroredVariable in Replica Context. …` | older versions; now only central storage: `AggregatingVariable`, see FM38 | 2, 3 |
# | `ValueError: creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, …` | a counter of integers that has `aggregation=MEAN` | 2, 3 |
#
# Gradient accumulation updates the weights in every n-th step only. The condition stands in the step that each replica runs,
# and an update is not allowed there.
#
# *Raises on Keras 2 and 3, under `MirroredStrategy` (also with one GPU), `MultiWorkerMirroredStrategy`,
# `CentralStorageStrategy` and `ParameterServerStrategy`. `OneDeviceStrategy` and `TPUStrategy` do not raise.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm15",
    slug="accumulation_under_strategy",
    title="`merge_call called while defining a new graph`: a condition around `apply_gradients`",
    sees="`merge_call` called while defining a new graph, from an update under `tf.cond`",
    fix="put the condition around `strategy.run(update)`, outside of the replicas; create the sum with `aggregation=MEAN`",
    document="002",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"`merge_call` called while defining a new graph or a tf\.function",
            strategies=("mirrored", "central_storage", "multi_worker", "parameter_server"),
        ),
    ),
    prints="weight after two updates: 0.64",
    exercise_prints="kernel after one update: [[0.02]]",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm15", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Each of eight steps adds a gradient to a sum, and every fourth step updates the weight from the sum. Without a strategy it
# prints `0.64`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Move the update to its own `strategy.run`, and put the condition around it, outside of the replicas. An `if` in the training
# loop, around a `tf.function` of its own, is right, too.
#
# A `train_step` for `fit` runs inside the replicas. Give `fit` the large batch there, and add up the gradients of its parts
# without a condition, as in the exercise.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# An update adds the gradients of all replicas first. `apply_gradients` therefore calls `merge_call`, where each replica waits
# for the other replicas. A branch of `tf.cond` is a graph inside the graph of the step, and TensorFlow cannot leave this inner
# graph to wait. The check is the same for one replica.
#
# `OneDeviceStrategy` does not wait. `TPUStrategy` traces all replicas in one graph and does not wait either: it traces this
# program without an error. What a TPU then computes we have not tried.
#
# Each replica adds to the sum, and `aggregation=MEAN` is right under every strategy. Without it, central storage raises `You
# must specify an aggregation method`; `MirroredStrategy` says this in older versions of TensorFlow only. With
# `synchronization=tf.VariableSynchronization.ON_READ` in addition, the replicas add without communication. Assign tensors:
# `assign(0.0)` raises `'float' object has no attribute 'shape'`, and with `aggregation=SUM` every other number raises
# `A non-DistributedValues value 1.0 cannot be reduced`.
#
# The sums take as much memory as the weights. That is less than the activations of a large batch take, and more if the model is
# wide and the batch is small.
#
# The pictures show where the condition may stand, and which variable may hold the sum. See
# [`merge_call`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext#merge_call).

# %% tags=["figure"]
# The two programs above, and the same with `if` in place of `tf.cond`.
from strategy_clinic import figures

IN_STEP = (
    "tf.cond(number % 4 == 0, update, lambda: None)  # wrong: a condition in the replica",
    "if number % 4 == 0:\n        update()",
)
AROUND = (
    "tf.cond(number % 4 == 0, lambda: strategy.run(update), lambda: None)  # fixed: around it",
    "if number % 4 == 0:\n        strategy.run(update)",
)
NAMES = ["tf.cond in the step", "if in the step", "tf.cond around run", "if around run"]
PROGRAMS = session.variants("broken", IN_STEP[0], dict(zip(NAMES[:2], IN_STEP)))
PROGRAMS |= session.variants("fixed", AROUND[0], dict(zip(NAMES[2:], AROUND)))
two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
PLACES = [alone, two.but(devices=1), two]
printed = session.prints(PROGRAMS, PLACES)
RIGHT = {
    name: [word == "weight after two updates: 0.64" for word in printed[name]] for name in NAMES
}
COLUMNS = ["no strategy", "mirrored x1", "mirrored x2"]
figures.grid(RIGHT, COLUMNS, "updates", "raises", "Where may the condition stand?")

# %% tags=["figure"]
# The fixed program with other variables for the sum.
LINE = "total = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)"
KINDS = {
    "tf.Variable(0.0)": "total = tf.Variable(0.0, trainable=False)",
    "aggregation=SUM": LINE.replace("MEAN", "SUM"),
    "aggregation=MEAN": LINE,
}
WORDS = {"weight after two updates: 0.64": "right", "weight after two updates: 0.28": "twice"}
central = two.but(strategy="central_storage")
printed = session.prints(session.variants("fixed", LINE, KINDS), [two, central])
UPDATES = {name: [WORDS.get(word, word) for word in row] for name, row in printed.items()}
COLUMNS = ["mirrored x2", "central\nstorage x2"]
figures.words(UPDATES, COLUMNS, ["twice", "ValueError"], "Is the update right?")

# %% [markdown]
# ## Try other setups
#
# With `default` or `one_device` the condition may stay in the step.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs under five strategies, and on two devices with the other version of Keras. For a TPU the broken program was only
# traced:

# %% tags=["table"]
OTHERS = [central, two.but(strategy="multi_worker"), two.but(strategy="tpu_traced", devices=8)]
session.table([alone, two, two.but(keras=session.setup.other_keras), *OTHERS])

# %% [markdown]
# ## Exercise
#
# This `train_step` adds up the gradients of four batches, and `fit` raises. Give `fit` one large batch, and let the step add up
# the gradients of its parts. It should print `[[0.02]]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests what `assign` of a number raises.
REFUSED = """
try:
    train_step(tf.constant(4.0))
except AttributeError as error:
    print("'float' object has no attribute 'shape'" in str(error))
"""
NUMBER = ("total.assign(tf.constant(0.0))", "total.assign(0.0)")
text = session.texts["fixed"].replace(*NUMBER).partition("\nfor number")[0] + REFUSED
assert session.prints({"": text}, [two, central])[""] == ["True", "True"]

# %% [markdown]
# ## Read next
#
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): the same message without a condition: a nested `tf.function`, or the
#   `gradient_accumulation_steps` of an optimizer of Keras 3.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): divide each loss by the size of the whole batch.
# - [FM68](fm68_own_train_step.ipynb): what `fit` reports if a `train_step` returns the loss and not the result of a metric.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): why the program calls `optimizer.build` in the scope.
# - [FM13](fm13_gradients_inconsistent.ipynb): what to add for a layer that a batch did not use.
# - [FM11](fm11_unbuilt_model.ipynb): sums that are created before the model has its variables.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): other calls that a replica cannot make.
# - What an answer on accumulated gradients says: [document 002](documents/002_gradient_accumulation.ipynb).
