# %% [markdown]
# # FM39. What several replicas return cannot be used as one tensor
#
# The loss of each step is added up for the log. On one device `strategy.run` returns a tensor. On two it returns a `PerReplica`,
# and `float`, `.numpy()` and `+` raise.
#
# ```text
# TypeError: float() argument must be a string or a real number, not 'PerReplica'
# ```
#
# *Loud with two replicas or more in one process, under every strategy that has them. In a cluster of workers with one replica
# each it is silent. Keras plays no part. The `TPUStrategy` reference (003) mentions it in half a sentence.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm39",
    slug="per_replica_on_host",
    title="What several replicas return cannot be used as one tensor",
    sees="`'PerReplica' object has no attribute 'numpy'`, or `float()` refuses one, as soon as there are two devices",
    fix='`strategy.reduce("MEAN", losses, axis=None)`, or one value per replica: `strategy.experimental_local_results`',
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
            r"the logged loss is the mean over all examples",
            strategies=("multi_worker",),
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

session = clinic.open("fm39", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The step returns its loss, and the loop adds it to a sum. The script has run for weeks on one device. You believe that
# `strategy.run` returns what the step returns.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH, STEPS = 16, 3


def batch(number):
    return np.random.default_rng(number).normal(size=BATCH).astype("float32")


def loss_of(part):
    return tf.reduce_mean(tf.square(part))


def losses_of(strategy):
    """A traced step: each replica takes its part of a batch, and returns the loss of it."""

    def step(rows):
        context = tf.distribute.get_replica_context()
        return loss_of(rows[context.replica_id_in_sync_group :: context.num_replicas_in_sync])

    @tf.function
    def train_step(rows):
        return strategy.run(step, args=(rows,))

    return train_step


def proof(mean):
    want = np.mean([np.square(batch(number)) for number in range(STEPS)])
    return Proof("the logged loss is the mean over all examples", [mean], [want], 1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    train_step = losses_of(strategy)
    total = 0.0
    for number in range(STEPS):
        losses = train_step(tf.constant(batch(number)))
        total += float(losses)  # guilty: there is one loss for each replica
    return proof(total / STEPS)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Each replica returns a value. With several replicas in this process, `strategy.run` puts them into a `PerReplica`: a container
# with one tensor for each device. TensorFlow cannot know whether you want their mean, their sum or all of them, so a `PerReplica`
# is no tensor. It has no `numpy`, `dtype` or `shape`, and no arithmetic. With one replica in the process there is nothing to
# collect, and the tensor itself is returned. That is why the script works on the laptop.
#
# The same container holds the parts of a batch that a distributed dataset gives.
#
# The picture shows the same lines on one device and on two. A comparison with `==` raises nothing: it is `False`, since two
# containers are two objects. See
# [`DistributedValues`](https://www.tensorflow.org/api_docs/python/tf/distribute/DistributedValues).


# %%
LINES = {
    "float(losses)": lambda strategy, losses: float(losses),
    "losses.numpy()": lambda strategy, losses: losses.numpy(),
    "losses + 1.0": lambda strategy, losses: losses + 1.0,
    "tf.reduce_mean(losses)": lambda strategy, losses: tf.reduce_mean(losses),
    'f"{losses:.2f}"': lambda strategy, losses: f"{losses:.2f}",
    "losses < 3.0": lambda strategy, losses: losses < 3.0,
    "losses == losses_again": lambda strategy, losses: losses == strategy.run(tf.ones, ((),)),
    "strategy.reduce": lambda strategy, losses: strategy.reduce("MEAN", losses, axis=None),
    "experimental_local_results": lambda strategy, losses: float(
        strategy.experimental_local_results(losses)[0]
    ),
}


def came_of(line, setup):
    strategy = build_strategy(setup)
    losses = strategy.run(tf.ones, args=((),))
    try:
        value = line(strategy, losses)
    except (TypeError, AttributeError, ValueError) as error:
        return type(error).__name__
    return "works" if str(value) != "False" else "False"


two = session.setup.but(strategy="mirrored", devices=2)
one = two.but(devices=1)
FOUND = {name: [came_of(line, each) for each in (one, two)] for name, line in LINES.items()}
BAD = {word for row in FOUND.values() for word in row} - {"works"}
figures.words(FOUND, ["mirrored x1", "mirrored x2"], BAD, "What comes of a line?")

# %% [markdown]
# ## The fix
#
# Say how one value is to be made of many: `strategy.reduce` with `"MEAN"` or `"SUM"`. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# def step():
#     return 1.0 + tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
#
# losses = strategy.run(step)
# logged = float(losses)  # TypeError: float() argument must be a string or a real number, not 'PerReplica'
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# def step():
#     return 1.0 + tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
#
# losses = strategy.run(step)
# print(float(strategy.reduce("MEAN", losses, axis=None)))  # 1.5
# print([float(each) for each in strategy.experimental_local_results(losses)])  # [1.0, 2.0]
# ```
#
# Both calls also take the tensor of a single replica, so the script needs no second version. Use
# `strategy.experimental_local_results` where each value is wanted by itself, and `strategy.gather` where the replicas return
# rows. Do not read `losses.values`: the tensor of a single replica has no such attribute.
#
# In a cluster with one replica per worker nothing raises: `float` gives the loss of this worker's examples. `strategy.reduce`
# gives the loss of all.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    train_step = losses_of(strategy)
    total = 0.0
    for number in range(STEPS):
        losses = train_step(tf.constant(batch(number)))
        total += float(strategy.reduce("MEAN", losses, axis=None))  # repair: one loss of all
    return proof(total / STEPS)


session.proves(fixed)

# %%
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [two.but(strategy="tpu_traced", devices=8), two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device: the failure is gone, which is how it got into the script. Choose `multi_worker`: nothing is raised, and the
# number in the log is that of one worker.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) says what `run` returns:
#
# > Each element in the structure can either be tf.distribute.DistributedValues, Tensor objects, or Tensors (for example, if
# > running on a single replica).
#
# That is true, and the picture shows both cases. Of logging it says:
#
# > For example, loss computed from different replicas can be averaged using this API before printing.
#
# "Can be" is too weak: on two replicas it has to be.

# %% [markdown]
# ## Exercise
#
# Before an evaluation, the script looks at one batch of its distributed dataset: how large is the largest value? It raises.
# Change it so that it looks at all replicas' parts of the batch.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    dataset = tf.data.Dataset.from_tensor_slices(batch(0)).batch(BATCH)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    largest = rows.numpy().max()
    return Proof("the largest value of the batch is found", [largest], [batch(0).max()])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    dataset = tf.data.Dataset.from_tensor_slices(batch(0)).batch(BATCH)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    largest = max(part.numpy().max() for part in strategy.experimental_local_results(rows))
    return Proof("the largest value of the batch is found", [largest], [batch(0).max()])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): the same `strategy.reduce`, called too early.
# - [fm20 gather_misuse](fm20_gather_misuse.ipynb): putting the rows of all replicas into one tensor.
# - [fm19 partial_last_batch](fm19_partial_last_batch.ipynb): a mean over replicas that had different numbers of examples.
# - [fm22 non_tensor_in_run](fm22_non_tensor_in_run.ipynb): a step that returns something else than tensors.
