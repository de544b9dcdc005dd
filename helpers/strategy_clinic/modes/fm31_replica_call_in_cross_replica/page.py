# %% [markdown]
# # FM31. `DistributedVariable.handle is not available outside the replica context`: a step without `strategy.run`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` ValueError: DistributedVariable.handle is not available outside the replica context or a `tf.distribute.Strategy.update()` call. `` | `tape.gradient`, under `MirroredStrategy` and `MultiWorkerMirroredStrategy` | 2, 3 |
# | `AttributeError: 'NoneType' object has no attribute 'merge_call'` | `apply_gradients`, under every strategy | 2, 3 |
# | `` RuntimeError: `apply_gradients() cannot be called in cross-replica context. … `` | `apply_gradients` of `tf.keras.optimizers.legacy`, under every strategy | 2 |
# | `` ValueError: SyncOnReadVariable does not support `assign_add` in cross-replica context when aggregation is set to `tf.VariableAggregation.SUM`. `` | `metric.update_state`; on Keras 3 any variable with `ON_READ`; under strategies with copies of variables | 2, 3 |
#
# `strategy.scope()` creates variables for the strategy. It runs nothing on the devices, and in the scope no optimizer can update
# a variable. `strategy.run` calls the step on each device.
#
# *Raises on Keras 2 and 3, under every strategy, also with one device. It does not raise without a strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm31",
    slug="replica_call_in_cross_replica",
    title="`DistributedVariable.handle is not available outside the replica context`: a step without `strategy.run`",
    sees="a training step called under `strategy.scope()`, and not through `strategy.run`, raises",
    fix="pass the step to `strategy.run`, with a batch of a distributed dataset",
    document="000",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"DistributedVariable\.handle is not available outside the replica context",
            strategies=("mirrored", "multi_worker"),
        ),
        Symptom(
            "AttributeError",
            r"'NoneType' object has no attribute 'merge_call'",
            strategies=("one_device", "central_storage", "parameter_server", "tpu_traced", "tpu"),
        ),
    ),
    prints="bias after one step: [0.1]",
    exercise_prints="bias after one step: [0.1]",
    unavailable={
        "parameter_server": "a coordinator sends the steps to its workers, and datasets are not distributed"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm31", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# With `model.fit` it is enough to create the model in the scope. This training loop is written by hand, and it also stands in the
# scope.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Pass the step to `strategy.run`, and the dataset to `experimental_distribute_dataset`. The first calls the step once on each
# device; the second divides each batch among the devices. Without the second, every device gets the whole batch, and with two
# devices the update is twice as large. The loss is divided by the size of the whole batch, since `apply_gradients` adds the
# gradients of all devices.
#
# The loop needs no scope around it.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Code in the scope is in *cross-replica context*. The function that is passed to `strategy.run` is called in *replica context*,
# once for each replica, and there each variable stands for the copy on this device. See the [glossary of
# `tf.distribute`](https://www.tensorflow.org/api_docs/python/tf/distribute#glossary).
#
# A gradient is taken for one copy. In cross-replica context the tape asks a variable with several copies for its handle, and
# there is no single one. Other strategies, such as `OneDeviceStrategy` and `CentralStorageStrategy`, keep one copy. There the
# optimizer raises: it asks for the replica context and gets `None`.
#
# Do not take away the scope around the loop instead. The error is gone then, because Python starts in the replica context of the
# default strategy, but only one device computes. The other devices get its updates and are idle.

# %% tags=["figure"]
# Calls the same functions without a scope, in the scope and in `strategy.run`, and counts the devices on which each call runs.
import tensorflow as tf

from strategy_clinic import build_strategy, figures

two = session.setup.but(strategy="mirrored", devices=2)
distributed = build_strategy(two)
with distributed.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)
    counter = tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def take_gradient():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tf.ones((4, 3))))
    tape.gradient(loss, model.trainable_variables)


def apply_gradients():
    weights = model.trainable_variables
    optimizer.apply_gradients([(tf.zeros(weight.shape), weight) for weight in weights])


def devices_of(call):
    """Calls a function without a scope, in the scope, and in `strategy.run`."""

    def note(used):
        call()
        used.append(tf.zeros([]).device)

    def with_scope(used):
        with distributed.scope():
            note(used)

    def with_run(used):
        distributed.run(lambda: note(used))

    return [counted(place) for place in (note, with_scope, with_run)]


def counted(place):
    used = []
    try:
        place(used)
    except (ValueError, AttributeError):
        return "raises"
    count = len(set(used))
    return f"{count} device{'s' if count > 1 else ''}"


CALLS = {
    "model(batch)": lambda: model(tf.ones((4, 3))),
    "tape.gradient": take_gradient,
    "apply_gradients": apply_gradients,
    "assign_add, ON_READ": lambda: counter.assign_add(1.0),
}
USED = {name: devices_of(call) for name, call in CALLS.items()}
COLUMNS = ["no scope", "strategy.scope()", "strategy.run"]
figures.words(USED, COLUMNS, ["raises", "1 device"], "On how many of two devices?")

# %% [markdown]
# ## Try other setups
#
# With `central_storage` and `one_device` the message names `merge_call`. With `default`, which is no strategy, nothing is raised.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs under two strategies with two devices, with one device, without a strategy, and with the other version of Keras:

# %% tags=["table"]
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(strategy="central_storage"), two.but(devices=1), alone]
session.table([*SETUPS, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program computes the gradients with `strategy.run` and applies them afterwards. Change it so that it trains. It should
# print `[0.1]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM32](fm32_optimizer_built_in_replica.ipynb): on Keras 3, the first step with Adam in a `tf.function` raises.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): how to divide the loss by the size of the whole batch.
# - [FM21](fm21_dataset_misdistributed.ipynb): every device gets the whole batch.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): the reverse, a cross-replica call in a replica.
# - [FM03](fm03_scope_mismatch.ipynb): a model that was created outside the scope and cannot be trained in it.
