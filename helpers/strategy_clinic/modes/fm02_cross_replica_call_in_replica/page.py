# %% [markdown]
# # FM02. Calling a cross-replica method from inside a replica fails
#
# A step that ends with `strategy.reduce(...)` or `strategy.gather(...)` raises. The error advises `merge_call()`, which you do
# not need here.
#
# ```text
# RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()
# ```
#
# *Loud, with every strategy, device count and Keras generation, also without any strategy. Document: the answer on
# `get_weights()` in `strategy.run` (000).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm02",
    slug="cross_replica_call_in_replica",
    title="Calling a cross-replica method from inside a replica fails",
    sees="`strategy.reduce`, `.gather`, `.run` or `.scope()` inside the function given to `strategy.run` raises",
    fix="`strategy.reduce` on what `strategy.run` returns, or `get_replica_context().all_reduce` inside the step",
    document="000",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"Method requires being in cross-replica context, use get_replica_context\(\)\.merge_call\(\)",
        ),
    ),
    claims=(
        Claim("000-C4", "reducing `get_weights()` inside the replica function is correct", "false"),
    ),
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
# ## What goes wrong
#
# Every replica computes a loss of its own, and you want to log one number. `strategy.reduce` makes one number of many. You
# believe that it belongs where the losses are, so you call it at the end of the step.

# %%
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, observe


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def batch_of(replica):
    """Data that differ from replica to replica, so that the losses do too."""
    return tf.ones((4, 3)) * (1.0 + tf.cast(replica, tf.float32))


def this_replica():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def loss_of(model, data):
    return tf.reduce_mean(tf.square(model(data)))


def train(model):
    """One step on this replica's data; returns its loss before the step."""
    with tf.GradientTape() as tape:
        loss = loss_of(model, batch_of(this_replica()))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    observe(model=model.variables)

    def step():
        loss = train(model)
        return strategy.reduce("MEAN", loss, axis=None)  # guilty: called inside a replica

    @tf.function
    def train_step():
        return strategy.run(step)

    train_step()


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `strategy.reduce` takes the values of *all* replicas, as `strategy.run` returns them, and returns one value. It must be called
# in *cross-replica context*: outside the function that is given to `strategy.run`. Inside this function TensorFlow is in *replica
# context*, and the code has the value of one replica.
#
# Methods of the strategy that work on all replicas check the context first, and raise if it is the wrong one. The number of
# replicas does not matter. They raise on one device too.
#
# The counterparts inside a step are methods of `tf.distribute.get_replica_context()`. Each replica calls them, and each gets the
# result. `merge_call` is a lower-level method of the same object.
#
# The picture shows each method called in both contexts. See
# [`ReplicaContext`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext).

# %%
two = session.setup.but(strategy="mirrored", devices=2)


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


PLACES = {name: in_both_places(call, build_strategy(two)) for name, call in CALLS.items()}
COLUMNS = ["in the scope", "in a replica"]
figures.grid(PLACES, COLUMNS, "works", "raises", "Which call works where?")

# %% [markdown]
# ## The fix
#
# Return the loss from the step, and reduce it outside. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
#
# def step():
#     loss = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
#     return strategy.reduce("MEAN", loss, axis=None)
#
# @tf.function
# def train_step():
#     return strategy.run(step)
#
# train_step()  # RuntimeError: Method requires being in cross-replica context
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
#     return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
#
# @tf.function
# def train_step():
#     return strategy.run(step)
#
# losses = train_step()
# print(strategy.reduce("MEAN", losses, axis=None).numpy())  # 0.5
# ```
#
# Reduce only when you log. `tf.distribute.get_replica_context().all_reduce("MEAN", loss)` is for values that the step itself
# needs: it communicates in every step.


# %%
def mean_loss(strategy, model):
    """The mean of all replicas' losses, computed on the host without any reduction."""
    count = strategy.num_replicas_in_sync
    return sum(float(loss_of(model, batch_of(replica))) for replica in range(count)) / count


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    want = mean_loss(strategy, model)

    def step():
        loss = train(model)
        return loss  # repair

    @tf.function
    def train_step():
        return strategy.run(step)

    mean = strategy.reduce("MEAN", train_step(), axis=None)
    return Proof("the reduced value is the mean of all losses", [mean], [want])


session.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch `devices` to 1, or the strategy to `default`: the message stays the same. Only the place of the line matters.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" (000), on its
# second example:
#
# > The `strategy.reduce` operation aggregates the weights across all replicas (using a mean average in this case).
#
# In four runs, with the weights and with tensors, on two devices and on one, this line raises. The mean of the weights needs no
# reduction: the copies of a weight are equal, and `model.get_weights()` outside the step returns them.


# %% tags=["claims"]
def reduction_works(setup, values_of):
    """The last line of the document's second example, in an eager `strategy.run`, on a model made in scope."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def reduce(strategy, _):
        return [strategy.reduce("MEAN", each, axis=None) for each in values_of(model)]

    return in_both_places(reduce, strategy)[1]


def weights(model):
    return model.get_weights()


def tensors(model):
    return [tf.identity(weight) for weight in model.trainable_variables]


session.judges(
    {
        "000-C4": [
            reduction_works(each, values_of)
            for each in (two, two.but(devices=1))
            for values_of in (weights, tensors)
        ]
    },
)

# %% [markdown]
# ## Exercise
#
# An evaluation needs the predictions of all replicas in one tensor, in the order of the replicas. The script raises. Change it so
# that it returns them.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def predict():
        return strategy.gather(model(batch_of(this_replica())), axis=0)

    @tf.function
    def predict_step():
        return strategy.run(predict)

    got = predict_step()
    want = [model(batch_of(replica)) for replica in range(strategy.num_replicas_in_sync)]
    return Proof("one tensor holds the predictions of all replicas", got, tf.concat(want, axis=0))


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def predict():
        return model(batch_of(this_replica()))

    @tf.function
    def predict_step():
        return strategy.run(predict)

    got = strategy.gather(predict_step(), axis=0)
    want = [model(batch_of(replica)) for replica in range(strategy.num_replicas_in_sync)]
    return Proof("one tensor holds the predictions of all replicas", got, tf.concat(want, axis=0))


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): the reverse, a training step that is called
#   outside every replica.
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): on Keras 2 reading weights raises the same message.
# - [fm20 gather_misuse](fm20_gather_misuse.ipynb): `strategy.gather` in the right context, with values that it refuses.
# - [fm36 replica_group_resized](fm36_replica_group_resized.ipynb): an all-reduce that fails after the number of replicas changes.
