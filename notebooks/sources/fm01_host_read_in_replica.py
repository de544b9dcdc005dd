# %% [markdown]
# # FM01. Reading weights on the host from inside a replica fails
#
# A training step that ends with `model.get_weights()`, or with `.numpy()` on a variable, dies as soon as it runs under
# `tf.function`, with an error that speaks of eager execution or of contexts, and never of weights.
#
# ```text
# Keras 3  NotImplementedError: DistributedVariable.numpy() is only available when eager execution is enabled.
# Keras 2  RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()
# ```
#
# *Loud, with another message on Keras 2. The Keras generation matters more than strategy and device count. From document 000.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm01",
    slug="host_read_in_replica",
    title="Reading weights on the host from inside a replica fails",
    sees="`get_weights()` or `.numpy()` inside the function given to `strategy.run` raises",
    fix="return tensors from the step and read them on the host, after `strategy.run`",
    document="000",
    switches=("keras", "strategy"),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"numpy\(\) is only available when eager execution is enabled",
            keras=(3,),
        ),
        Symptom(
            "RuntimeError",
            r"Cannot get value inside Tensorflow graph function",
            strategies=("default",),
            keras=(2,),
        ),
        Symptom(
            "RuntimeError",
            r"Method requires being in cross-replica context, use get_replica_context",
            keras=(2,),
        ),
    ),
    claims=(
        Claim(
            "000-C1",
            "reading weights before or after training, outside `strategy.run`, will likely fail",
            "false",
        ),
        Claim("000-C2", "it fails because the weights are not on the calling device", "false"),
        Claim("000-C3", "the right place to read weights is inside `strategy.run`", "false"),
        Claim("000-C5", "each replica holds its own copy of every variable", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm01", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You want to look at the weights after each step, and the step runs on the replicas, so you read them there. The function
# looks like Python, so reading a number in it looks harmless.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, observe


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def train(model):
    """One step on data that differs from replica to replica."""
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    batch = tf.ones((4, 3)) * (1.0 + tf.cast(replica, tf.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch)))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    observe(model=model.variables)

    def step():
        train(model)
        return model.get_weights()  # guilty: asks for numbers while the step is only being traced

    @tf.function
    def train_step():
        return strategy.run(step)

    train_step()


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# `get_weights()` hands NumPy arrays to Python. Inside `tf.function` Python runs once, to write down the graph, and at
# that moment no variable has a number to give. Keras 3 finds this out when it calls `numpy()`. Keras 2 stops earlier: it
# reads variables in *cross-replica* context, where one answer stands for all copies, and inside `strategy.run` you are in
# *replica* context, where there are several. So Keras 2 refuses even an eager `strategy.run`, and Keras 3 does not.
#
# The picture is made by reading the weights in four places. See
# [`tf.distribute.ReplicaContext`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


def reads(model):
    """Is Python eager here, is this outside every replica, and does reading the weights work?"""
    try:
        works = len(model.get_weights()) == 2
    except (RuntimeError, NotImplementedError):
        works = False
    in_replica = tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    return [tf.executing_eagerly(), not in_replica, works]


def places(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        inside = reads(model)
    seen = {"host, outside the scope": reads(model), "host, inside the scope": inside}

    def look(name):
        seen[name] = reads(model)

    @tf.function
    def traced():
        strategy.run(look, args=("replica, traced",))

    strategy.run(look, args=("replica, eager",))
    traced()
    return seen


PLACES = places(two)
COLUMNS = ["eager", "not in a\nreplica", "get_weights()"]
figures.grid(PLACES, COLUMNS, "yes", "no", "Where can weights be read?")

# %% [markdown]
# ## The fix
#
# Let the step return tensors; `tf.identity` of a variable is one. `strategy.run` gives back one tensor per replica,
# and the host reads those after the step. If any replica will do, read `model.get_weights()` on the host: it always works there.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    variables = [checks.variable_of(weight) for weight in model.trainable_variables]

    def step():
        train(model)
        return [tf.identity(variable) for variable in variables]  # repair

    @tf.function
    def train_step():
        return strategy.run(step)

    copies = [strategy.experimental_local_results(each) for each in train_step()]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(model.get_weights(), copies) for _ in each]
    return Proof("every replica holds the weights that the host reads", got, want)


clinic.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (two, alone)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# No device count makes this failure go away, one device included, so it was never about where the weights are. Switch
# Keras, and the message changes.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 000 says that weights must be read inside `strategy.run`, and that reading them outside is what fails. A run says
# the opposite of both.


# %% tags=["claims"]
def on_replicas(setup, function):
    """Builds a model in scope and runs a traced function of it on every replica."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    @tf.function
    def run():
        strategy.run(function, args=(model,))

    run()
    return model


def traced_read_works(setup):
    """`get_weights()` in a traced replica function: the document calls this the right place."""
    seen = []

    def look(model):
        seen.append(reads(model)[-1])

    on_replicas(setup, look)
    return all(seen)


trained, untrained = on_replicas(two, train), on_replicas(two, reads)
parts = [figures.values_of(weight) for weight in trained.trainable_variables]
equal = [np.array_equal(part[0], each) for part in parts for each in part]
clinic.judges(
    {
        # Read here, outside the scope: where the document expects the error.
        "000-C1": [not reads(untrained)[-1], not reads(trained)[-1]],
        "000-C2": [
            traced_read_works(two.but(devices=1)),
            traced_read_works(two.but(strategy="one_device", devices=1)),
        ],
        "000-C3": [traced_read_works(two)],
        "000-C5": [all(len(part) == 2 for part in parts), *equal],
    },
)

# %% [markdown]
# ## Exercise
#
# The step should report the largest weight of the first layer. Change it so that it does, without leaving `tf.function`.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def step():
        train(model)
        return model.get_weights()[0].max()

    @tf.function
    def train_step():
        return strategy.run(step)

    got = strategy.experimental_local_results(train_step())
    return Proof(
        "the step reports the largest weight", got, [model.get_weights()[0].max()] * len(got)
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def step():
        train(model)
        return tf.reduce_max(checks.variable_of(model.trainable_variables[0]))

    @tf.function
    def train_step():
        return strategy.run(step)

    got = strategy.experimental_local_results(train_step())
    return Proof(
        "the step reports the largest weight", got, [model.get_weights()[0].max()] * len(got)
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): another call with no place inside a replica.
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what else changes when Python runs once, to write a graph.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): a model whose variables have no copies, although you meant them to.
