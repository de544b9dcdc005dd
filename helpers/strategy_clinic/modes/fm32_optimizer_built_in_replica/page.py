# %% [markdown]
# # FM32. An optimizer that makes its slots in the first traced step fails
#
# A distributed training loop works with plain SGD. With Adam, the first step fails: a placeholder has no value. The program
# contains no placeholder.
#
# ```text
# Keras 3  InvalidArgumentError: You must feed a value for placeholder tensor … with dtype int32
# ```
#
# *Loud, on Keras 3 only, with `MirroredStrategy` on two devices or more. The loop is that of "What causes RuntimeError in
# TensorFlow's `get_weights()` during `strategy.run`?", with `tf.function` added.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm32",
    slug="optimizer_built_in_replica",
    title="An optimizer that makes its slots in the first traced step fails",
    sees="Adam in a traced `strategy.run` of Keras 3 raises: a placeholder has no value",
    fix="`optimizer.build(model.trainable_variables)` in the scope, before the first step",
    document="000",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"You must feed a value for placeholder tensor",
            strategies=("mirrored",),
            devices=(2, 4, 8),
            keras=(3,),
            until="keras 3.16",
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

session = clinic.open("fm32", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You create the model and the optimizer in the scope. A `tf.function` calls `strategy.run`, as the guides recommend. The loop has
# worked with SGD, so you believe that any optimizer can take its place.

# %%
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, observe

STEPS = 2


def make_strategy(setup):
    """`tf.distribute.MirroredStrategy(devices)` with its default all-reduce, or another strategy.

    Each mirrored one gets group numbers of its own, as in TensorFlow's tests: two sizes in one process would clash.
    """
    strategy = build_strategy(setup)
    if setup.strategy != "mirrored":
        return strategy
    tf.distribute.MirroredStrategy._collective_key_base += 1000
    return tf.distribute.MirroredStrategy(strategy.extended.worker_devices)


def make_model():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    return tf.keras.Sequential(layers)


def train(strategy, model, optimizer):
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.constant([[1.0], [2.0]]))))
            loss /= strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step():
        strategy.run(step)

    for _ in range(STEPS):
        train_step()


def proof(model, optimizer):
    """The weights and the count of steps, against the same training without a strategy."""
    alone, own = make_model(), type(optimizer).from_config(optimizer.get_config())
    train(tf.distribute.get_strategy(), alone, own)
    return Proof(
        "weights and count of steps are those of one device",
        [*model.get_weights(), optimizer.iterations.numpy()],
        [*alone.get_weights(), STEPS],
    )


# %%
@experiment
def broken(setup):
    strategy = make_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.1)  # guilty: its slots wait for the first step
    observe(model=model.variables)
    train(strategy, model, optimizer)
    return proof(model, optimizer)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Adam keeps two slot variables for each weight. Keras 3 creates them in the first step, while it is being traced. TensorFlow
# cannot initialize the second device's copy outside the graph, because that copy starts with the value of the first. So it wraps
# the step in a conditional: create the slots, or use those that exist.
#
# `MirroredStrategy` adds up gradients with a collective all-reduce. Each all-reduce has an instance number, which is an input of
# the graph. That input does not reach the conditional: it is the placeholder without a value.
#
# One device has no second copy. SGD without momentum has no slots. Keras 2 creates slots outside the graph. See
# [`_next_instance_key`](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/distribute/cross_device_utils.py)
# in TensorFlow's source.

# %%
two = session.setup.but(strategy="mirrored", devices=2)


def trains(kind, build=False, eager=False):
    strategy = make_strategy(two)
    tf.config.run_functions_eagerly(eager)
    try:
        with strategy.scope():
            model, optimizer = make_model(), kind(0.1)
            if build:
                optimizer.build(model.trainable_variables)
        train(strategy, model, optimizer)
    except tf.errors.InvalidArgumentError:
        return False
    finally:
        tf.config.run_functions_eagerly(False)
    return True


TRAINS = {
    "SGD": trains(tf.keras.optimizers.SGD),
    "Adam": trains(tf.keras.optimizers.Adam),
    "Adam,\nrun eagerly": trains(tf.keras.optimizers.Adam, eager=True),
    "Adam,\nbuilt first": trains(tf.keras.optimizers.Adam, build=True),
}
figures.grid({"on two devices": list(TRAINS.values())}, list(TRAINS), "trains", "raises")

# %% [markdown]
# ## The fix
#
# Build the optimizer in the scope, with the variables that it will train. Then the slots exist before the first trace. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
# with strategy.scope():
#     weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.Adam(0.1)
#
# @tf.function
# def train_step():
#     strategy.run(lambda: optimizer.apply_gradients([(weight * 2.0, weight)]))
#
# train_step()  # InvalidArgumentError: You must feed a value for placeholder tensor
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
# with strategy.scope():
#     weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.Adam(0.1)
#     optimizer.build([weight])
#
# @tf.function
# def train_step():
#     strategy.run(lambda: optimizer.apply_gradients([(weight * 2.0, weight)]))
#
# train_step()
# print(weight.numpy().round(3))  # 0.9
# ```
#
# If you cannot reach the optimizer, create the strategy with `cross_device_ops=tf.distribute.ReductionToOneDevice()`. That
# reduction has no instance number.


# %%
@experiment
def fixed(setup):
    strategy = make_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.1)
        optimizer.build(model.trainable_variables)  # repair
    train(strategy, model, optimizer)
    return proof(model, optimizer)


session.proves(fixed)

# %%
SETUPS = [two, two.but(devices=1), two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device, another strategy or Keras 2: the failure is gone. Set two or more devices of `mirrored` on Keras 3: it is back.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" creates an Adam in its examples and never
# builds it. Run eagerly, as printed, its loops do not show this failure. They show it with a `tf.function`.
#
# The reference of `tf.distribute.TPUStrategy` says about variables that are created late:
#
# > any functions that may lazily create variables (e.g., Model.call(), tracing a tf.function, etc.) should similarly be called
# > within scope
#
# Here that is not enough: the step fails in the scope too. That `strategy.run` enters the scope by itself is judged in
# [fm23](fm23_variable_outside_scope.ipynb). That `fit` works outside the scope is judged in
# [fm25](fm25_load_outside_scope.ipynb); `fit` builds the optimizer before its first step.

# %% [markdown]
# ## Exercise
#
# This script has used plain SGD for a year. Somebody adds momentum, and the script fails. Repair it and keep the momentum.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = make_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    train(strategy, model, optimizer)
    return proof(model, optimizer)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = make_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
    train(strategy, model, optimizer)
    return proof(model, optimizer)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): an optimizer that is built, but in the wrong scope.
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): slots that are created after a restore, silently.
# - [fm36 replica_group_resized](fm36_replica_group_resized.ipynb): another failure of the default all-reduce.
