# %% [markdown]
# # FM02. `Method requires being in cross-replica context`: `strategy.reduce` inside a replica
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()` | `strategy.reduce`, `strategy.run` or `strategy.scope()` in the step | 2, 3 |
# | `RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()` | `model.fit`, `predict` or `evaluate` in the step | 2 |
# | `ValueError: next(iterator) should be called from outside of replica_fn` | `model.fit`, `predict` or `evaluate` in the step | 3 |
# | `RuntimeError: tf.distribute.Strategy.gather method requires cross-replica context, use …` | `strategy.gather` in the step: see FM20 | 2, 3 |
#
# Inside the function given to `strategy.run` the code has the value of one replica, and these methods need the values of all.
#
# *Raises on Keras 2 and 3, under every strategy, on one device and without a strategy, too.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm02",
    slug="cross_replica_call_in_replica",
    title="`Method requires being in cross-replica context`: `strategy.reduce` inside a replica",
    sees="`strategy.reduce`, `.gather`, `.run` or `.scope()` in the function given to `strategy.run` raises",
    fix="`strategy.reduce` on what `strategy.run` returns, or `get_replica_context().all_reduce` inside the step",
    document="000",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"Method requires being in cross-replica context, use get_replica_context\(\)\.merge_call\(\)",
        ),
    ),
    prints="loss: 1.0",
    exercise_prints="all predictions: True",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm02", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Each replica computes a loss, and you want to log one number. The step ends with `strategy.reduce`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Return the loss of the replica, and reduce what `strategy.run` returns. `strategy.reduce` may stand in the `tf.function` that
# calls `strategy.run`, as here, or after it. The error advises `merge_call()`, which you do not need.
#
# Use "SUM" if each loss is divided by the size of the whole batch, as in this program and in TensorFlow's tutorial. Use "MEAN"
# if each loss is a mean over equal parts. [FM37](fm37_loss_scaled_per_replica.ipynb) and [FM19](fm19_partial_last_batch.ipynb)
# show what goes wrong otherwise.
#
# If the step itself needs the sum, call `tf.distribute.get_replica_context().all_reduce("SUM", loss)`. Every replica must
# make this call: in an `if` on the number of the replica it raises `Some replicas made a different number of
# replica_context().merge_call() calls`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `strategy.run` calls the step once for each replica, in *replica context*. Methods that work on all replicas, such as
# `strategy.reduce`, need *cross-replica context*, outside of the step. They check the context first, so the number of replicas
# does not matter. `fit`, `evaluate` and `predict` call `strategy.run` themselves, so they belong outside of the step, too.
#
# The counterparts for the step are methods of `tf.distribute.get_replica_context()`, which is `context` in the table: each
# replica calls them, and each gets the result. `merge_call`, which the error advises, runs a function once for all replicas.
# Optimizers use it; steps rarely do.
#
# The mean of the weights needs no reduction: an optimizer keeps the copies of a weight equal, and `model.get_weights()` after the
# step returns one of them.
#
# The table shows which call works where. Outside of every scope TensorFlow is in a default context that allows both kinds. See
# [`ReplicaContext`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext).

# %% tags=["figure"]
# Each method is called on the values of all replicas in the scope, and on the value of one replica in the step.
import tensorflow as tf

from strategy_clinic import build_strategy, figures


def enter(strategy, value):
    with strategy.scope():
        return value


def context():
    return tf.distribute.get_replica_context()


CALLS = {
    "strategy.reduce": lambda strategy, value: strategy.reduce("SUM", value, axis=None),
    "strategy.gather": lambda strategy, value: strategy.gather(value, axis=0),
    "strategy.run": lambda strategy, value: strategy.run(tf.identity, args=(value,)),
    "strategy.scope": enter,
    "context.all_reduce": lambda strategy, value: context().all_reduce("SUM", value),
    "context.all_gather": lambda strategy, value: context().all_gather(value, axis=0),
}


def works(call, strategy, value):
    try:
        call(strategy, value)
    except (RuntimeError, AttributeError):  # in the scope there is no replica context
        return False
    return True


def in_both_places(call, strategy):
    """Does a call work on the values of all replicas, under the scope, and on one value, in a replica?"""
    inside = []
    one_each = strategy.run(lambda: tf.ones(1))
    strategy.run(lambda: inside.append(works(call, strategy, tf.ones(1))))
    with strategy.scope():
        return [works(call, strategy, one_each), all(inside)]


two = session.setup.but(strategy="mirrored", devices=2)
PLACES = {name: in_both_places(call, build_strategy(two)) for name, call in CALLS.items()}
COLUMNS = ["outside the step", "inside the step"]
figures.grid(PLACES, COLUMNS, "works", "raises", "Which call works where?")

# %% [markdown]
# ## Try other setups
#
# With one device, or without a strategy (`default`), the message stays the same.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on one and two devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
one = two.but(devices=1)
SETUPS = [two.but(strategy="default", devices=1), one, two, two.but(strategy="central_storage")]
session.table([*SETUPS, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# An evaluation needs the predictions of all replicas in one tensor. This script raises. Change it so that it returns them.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py


# %% tags=["tests"]
# Tests what is raised if only one of the replicas calls `all_reduce`.
def only_the_first():
    if tf.get_static_value(context().replica_id_in_sync_group) == 0:
        context().all_reduce("SUM", tf.ones(1))


try:
    build_strategy(two).run(only_the_first)
except RuntimeError as error:
    assert "Some replicas made a different number" in str(error)
else:
    raise AssertionError("it raises nothing")

# %% [markdown]
# ## Read next
#
# - [FM31](fm31_replica_call_in_cross_replica.ipynb): the reverse, a training step that is called outside of every replica.
# - [FM01](fm01_host_read_in_replica.ipynb): on Keras 2 reading weights in the step raises the same message.
# - [FM39](fm39_per_replica_on_host.ipynb): printing what `strategy.run` returns without a reduction.
# - [FM20](fm20_gather_misuse.ipynb): `strategy.gather` in the right place, with values that it refuses.
# - What an answer on `get_weights()` says: [document 000](documents/000_weights_in_run.ipynb).
