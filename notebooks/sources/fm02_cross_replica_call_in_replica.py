# %% [markdown]
# # FM02. Calling a cross-replica method from inside a replica fails
#
# A step that ends with `strategy.reduce(...)` or `strategy.gather(...)` dies, and the error tells you to use `merge_call()`,
# a method that you have never heard of and do not need.
#
# ```text
# RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()
# ```
#
# *Loud, with every strategy, device count and Keras generation, also without any strategy. From document 000.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm02",
    slug="cross_replica_call_in_replica",
    title="Calling a cross-replica method from inside a replica fails",
    sees="`strategy.reduce`, `.gather`, `.run` or `.scope()` inside the function given to `strategy.run` raises",
    fix="`get_replica_context().all_reduce` inside the step, or `strategy.reduce` on what `strategy.run` returns",
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
import helpers

clinic = helpers.open("fm02", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Every replica has a loss of its own, and you want to log one number. The strategy has a method that makes one number of many.
# You have the strategy at hand inside the step, and the losses are made there, so you call it there.

# %%
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, observe, runner


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

    @tf.function
    def step():
        loss = train(model)
        return strategy.reduce("MEAN", loss, axis=None)  # guilty: one replica asks for all of them

    strategy.run(step)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# `strategy.reduce` takes the values of *all* replicas, as `strategy.run` hands them out, and gives back one. It stands above the
# replicas: TensorFlow calls that *cross-replica context*. Inside the step you are one replica and hold one value, with nothing
# to reduce. So the methods of the strategy refuse to start, and one replica is no exception: the rule is about where the line
# stands, not about how many replicas there are.
#
# A replica has methods of its own for what all replicas do together. They belong to the replica's context, not to the strategy.
# Each waits until all replicas have arrived at it, which is the `merge_call` that the message means.
#
# The picture is made by calling each method in both places. See
# [`ReplicaContext.all_reduce`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext#all_reduce).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


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
    except (RuntimeError, AttributeError):  # above the replicas there is no context to ask
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
COLUMNS = ["outside", "in a replica"]
figures.grid(PLACES, COLUMNS, "works", "raises", "Which call works where?")

# %% [markdown]
# ## The fix
#
# Ask the replica's context, and every replica gets the mean. Or let the step return its loss, and write
# `strategy.reduce("MEAN", strategy.run(step), axis=None)` on the host, which costs nothing in a step that needs no mean.


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

    @tf.function
    def step():
        loss = train(model)
        return tf.distribute.get_replica_context().all_reduce("MEAN", loss)  # repair

    got = strategy.experimental_local_results(runner(strategy)(step))
    return Proof("every replica holds the mean of all losses", got, [want] * len(got))


clinic.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), two.but(devices=4), alone]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Nothing in the panel makes this failure go away, and that is the point: it is about the place of one line. The message is
# the same on one device and on eight, on Keras 2 and 3.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 000 offers a reduction of `get_weights()` inside the replica function as its correct example. It has never run: not
# with its weights, not with plain tensors, not with one device. And the mean that it is after needs no reduction at all,
# since the copies of a weight are equal: `model.get_weights()` on the host is that mean.


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
    return [tf.identity(checks.variable_of(weight)) for weight in model.trainable_variables]


clinic.judges(
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
# An evaluation wants the predictions of all replicas in one tensor. Change it so that it gets them, in the order of the
# replicas.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def predict():
        return strategy.gather(model(batch_of(this_replica())), axis=0)

    got = runner(strategy)(predict)
    want = [model(batch_of(replica)) for replica in range(strategy.num_replicas_in_sync)]
    return Proof("one tensor holds the predictions of all replicas", got, tf.concat(want, axis=0))


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def predict():
        return model(batch_of(this_replica()))

    got = strategy.gather(runner(strategy)(predict), axis=0)
    want = [model(batch_of(replica)) for replica in range(strategy.num_replicas_in_sync)]
    return Proof("one tensor holds the predictions of all replicas", got, tf.concat(want, axis=0))


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): the reverse, a call that belongs in a replica
#   and is made above all of them.
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): on Keras 2 the same message comes from reading weights,
#   which is a cross-replica call in disguise.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): what `strategy.scope()` is for, and where it belongs.
