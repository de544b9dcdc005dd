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
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm15",
    slug="accumulation_under_strategy",
    title="`merge_call called while defining a new graph`: a condition around `apply_gradients`",
    sees="`merge_call` called while defining a new graph, from an update under `tf.cond`",
    fix="put the condition around `strategy.run(update)`, outside of the replicas; give a variable for sums `aggregation`",
    document="002",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"`merge_call` called while defining a new graph or a tf\.function",
            strategies=("mirrored", "central_storage", "multi_worker", "parameter_server"),
        ),
    ),
    claims=(
        Claim("002-C3", "summing the gradients of ten batches equals one larger batch", "false"),
        Claim(
            "002-C9", "ten small batches need less memory than one batch of all examples", "half"
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

# %% [markdown]
# ## What documents say
#
# An answer to "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?" sums the mean
# gradients of ten batches "to effectively increase the batch size". The update is ten times that of one larger batch. Divide
# each loss by the number of batches.
#
# It accumulates because of "memory constraints". The sums are one more copy of the weights. They cost less than the activations
# of a large batch, and more if the model is wide and the batch is small. The last line counts the bytes of all tensors in
# the traced step.

# %% tags=["claims"]
# What `assign` of a number raises, and summed gradients of ten batches, in gradients of the mean loss of all their examples.
import tensorflow as tf

REFUSED = """
try:
    train_step(tf.constant(4.0))
except AttributeError as error:
    print("'float' object has no attribute 'shape'" in str(error))
"""
NUMBER = ("total.assign(tf.constant(0.0))", "total.assign(0.0)")
text = session.texts["fixed"].replace(*NUMBER).partition("\nfor number")[0] + REFUSED
assert session.prints({"": text}, [two, central])[""] == ["True", "True"]

rows = tf.random.stateless_normal((40, 3), seed=(0, 0))
weights = tf.Variable(tf.fill((3, 1), 0.5))


def gradient_of(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
    return tape.gradient(loss, weights)


summed, large = tf.add_n([gradient_of(part) for part in tf.split(rows, 10)]), gradient_of(rows)


def step_bytes(width, examples, accumulate):
    """The bytes of the tensors in a traced training step of three dense layers, and of the variables for the sums."""
    kernels = [tf.Variable(tf.fill((width, width), 0.01)) for _ in range(3)]
    sums = [tf.Variable(tf.zeros_like(kernel)) for kernel in kernels] if accumulate else []

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            hidden = batch
            for kernel in kernels:
                hidden = tf.nn.relu(hidden @ kernel)
            loss = tf.reduce_mean(tf.square(hidden))
        for target, gradient in zip(sums or kernels, tape.gradient(loss, kernels)):
            target.assign_add(gradient)

    graph = step.get_concrete_function(tf.TensorSpec((examples, width))).graph
    tensors = [output for op in graph.get_operations() for output in op.outputs] + sums
    return sum(
        tensor.shape.num_elements() * tensor.dtype.size
        for tensor in tensors
        if tensor.dtype == tf.float32
    )


# Width of the layers, and examples of one of ten batches.
BYTES = {
    (width, examples): (step_bytes(width, examples, True), step_bytes(width, 10 * examples, False))
    for width, examples in ((64, 8), (512, 1))
}
print("summed / large:", (summed / large).numpy().ravel().round(2))
print("bytes of one of ten batches with its sums, and of the large batch:", *BYTES.values())
session.judges(
    {
        "002-C3": [bool(tf.reduce_all(tf.abs(summed - large) < 1e-5))],
        "002-C9": [accumulated < whole for accumulated, whole in BYTES.values()],
    },
    other_evidence={"002-C9": "traced"},
)

# %% [markdown]
# ## Read next
#
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): the same message without a condition: a nested `tf.function`, or the
#   `gradient_accumulation_steps` of an optimizer of Keras 3.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): divide each loss by the size of the whole batch.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): why the program calls `optimizer.build` in the scope.
# - [FM13](fm13_gradients_inconsistent.ipynb): what to add for a layer that a batch did not use.
# - [FM11](fm11_unbuilt_model.ipynb): sums that are created before the model has its variables.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): other calls that a replica cannot make.
