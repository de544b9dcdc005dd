# %% [markdown]
# # FM20. `strategy.gather` of a scalar: `Can't concatenate scalars`, `Requires start <= limit`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: Requires start <= limit when delta > 0: 1/0 for '{{node allgather/range_1}} = Range…` | `MirroredStrategy()`, `MultiWorkerMirroredStrategy()` | 2, 3 |
# | `RuntimeError: tf.distribute.Strategy.gather method requires cross-replica context, use get_replica_context().all_gather() …` | inside the step, under every strategy | 2, 3 |
# | `InvalidArgumentError: Can't concatenate scalars (use tf.stack instead)` | `CentralStorageStrategy`, `TPUStrategy`, `ReductionToOneDevice()`; a `ValueError` in a `tf.function` | 2, 3 |
#
# `strategy.gather` concatenates the replicas' tensors along an axis, and a scalar has no axis. Inside the step `gather` cannot
# be called at all.
#
# *Raises on Keras 2 and 3, under every strategy with several replicas. With one replica a scalar passes.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm20",
    slug="gather_misuse",
    title="`strategy.gather` of a scalar: `Can't concatenate scalars`, `Requires start <= limit`",
    sees="`strategy.gather` raises: it can't concatenate scalars, or requires another context",
    fix="read the scalars with `experimental_local_results`, or gather `loss[tf.newaxis]`; in the step, `all_gather`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "ValueError",
            r"Requires start <= limit when delta > 0: 1/0",
            strategies=("mirrored",),
            devices=(2, 4, 8),
        ),
        Symptom(
            "ValueError",
            r"Requires start <= limit when delta > 0: 1/0",
            strategies=("multi_worker",),
        ),
        Symptom(
            "InvalidArgumentError",
            r"Can't concatenate scalars \(use tf\.stack instead\)",
            strategies=("central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="largest loss: 2.5",
    exercise_prints="largest loss: 2.5",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm20", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The step returns one loss for each replica, and the host looks for the largest.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# For one number, such as the mean loss, do not gather: `strategy.reduce("MEAN", losses(), axis=None)` accepts scalars, see
# [FM39](fm39_per_replica_on_host.ipynb). To look at the losses of this process, do not gather either.
# `experimental_local_results` returns a tuple with one entry for each replica, and accepts scalars:
#
# ```python
# for loss in strategy.experimental_local_results(losses()):
#     print(float(loss))
# ```
#
# To get one tensor with an entry for each replica of all processes, give each loss an axis of length one:

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In the step, use the replica context. Its `all_gather` gives each replica the values of all replicas. It refuses scalars too,
# in the same words:
#
# ```python
# everywhere = tf.distribute.get_replica_context().all_gather(loss[tf.newaxis], axis=0)
# ```
#
# ## Why
#
# [`gather`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#gather) does not make a list. It works like
# `tf.concat`: the tensors need the axis, and the same size along every other axis. The collectives of `MirroredStrategy` and
# `MultiWorkerMirroredStrategy` first move the axis to the front, and fail there with the message about `1/0`. Other strategies
# copy the tensors to one device and call `tf.concat`.
#
# With one replica `MirroredStrategy` has nothing to concatenate, so the scalar comes back unchanged. The script fails when it
# gets a second device.
#
# `gather` belongs to the cross-replica context: its argument is what `strategy.run` has returned.
#
# `tf.IndexedSlices`, the gradients of embeddings, are not refused if a process has several replicas. They are made dense, with
# *all* rows of the embedding for each replica.

# %% tags=["figure"]
# Steps that return different things; what they return is gathered along axis 0 under each setup.
import tensorflow as tf

from strategy_clinic import build_strategy, figures


def number():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def sparse_rows():
    return tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([4, 2]))


THINGS = {
    "a scalar": lambda: tf.cast(number(), "float32"),
    "scalar[tf.newaxis]": lambda: tf.cast(number(), "float32")[tf.newaxis],
    "vectors of two lengths": lambda: tf.ones(3)[: 1 + number() % 2],
    "tf.IndexedSlices": sparse_rows,
}


def gathered(setup, thing):
    """The shape of what `gather` gives, or None where it refuses."""
    strategy = build_strategy(setup)

    @tf.function
    def once():
        return strategy.run(thing)

    try:
        return strategy.gather(once(), axis=0).shape
    except (ValueError, tf.errors.InvalidArgumentError, RuntimeError):
        return None


def gathers_inside(setup):
    strategy = build_strategy(setup)
    return gathered(setup, lambda: strategy.gather(tf.ones(1), axis=0)) is not None


two = session.setup.but(strategy="mirrored", devices=2)
one, traced = two.but(devices=1), two.but(strategy="tpu_traced", devices=8)
PLACES = [one, two, traced]
FOUND = {
    name: [gathered(place, thing) is not None for place in PLACES] for name, thing in THINGS.items()
}
FOUND["gather inside the step"] = [gathers_inside(place) for place in PLACES]
NAMES = ["mirrored x1", "mirrored x2", "TPU x8"]
figures.grid(FOUND, NAMES, "gathered", "raises", "What can strategy.gather gather?")

# %% tags=["figure"]
# What each replica held in a step of both programs and how they ended, beside one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device the scalar passes. Under `central_storage` and `tpu_traced` the message changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one device and on two, and under three other strategies:

# %% tags=["table"]
others = [two.but(strategy=name) for name in ("central_storage", "multi_worker")]
session.table([one, two, *others, traced])

# %% [markdown]
# ## Exercise
#
# Each replica wants to know the largest of all losses while the step is running. Change one line.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests who accepts `tf.IndexedSlices`: two workers of one device each do not.
SLICES = """import tensorflow as tf

strategy = tf.distribute.get_strategy()
rows = strategy.run(lambda: tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([4, 2])))
print(strategy.gather(rows, axis=0).shape)
"""
printed = session.prints({"": SLICES}, [two, *others])
assert printed[""] == ["(8, 2)", "(8, 2)", "NotImplementedError"]

# %% [markdown]
# ## Read next
#
# - [FM39](fm39_per_replica_on_host.ipynb): what to do with a `PerReplica` on the host.
# - [FM19](fm19_partial_last_batch.ipynb): what `reduce` does with the values that you gather here.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): more calls that are not allowed in the step.
# - [FM22](fm22_non_tensor_in_run.ipynb): what a step may return.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
