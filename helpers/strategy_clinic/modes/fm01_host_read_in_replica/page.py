# %% [markdown]
# # FM01. Reading weights on the host from inside a replica fails
#
# A training step ends with `model.get_weights()`, or with `.numpy()` on a variable. Under `tf.function` it raises, and the error
# does not mention weights.
#
# ```text
# Keras 3  NotImplementedError: DistributedVariable.numpy() is only available when eager execution is enabled.
# Keras 2  RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()
# ```
#
# *Loud, under every strategy and device count, with another message on Keras 2. Document: the answer on `get_weights()` in
# `strategy.run` (000).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
import strategy_clinic as clinic

session = clinic.open("fm01", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You want to look at the weights after each step. The step runs on the replicas, so you read the weights there. The function
# looks like Python, and you believe that Python runs in every step.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, observe


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
        return model.get_weights()  # guilty: asks for values while the step is traced

    @tf.function
    def train_step():
        return strategy.run(step)

    train_step()


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `get_weights()` converts variables to NumPy arrays. `tf.function` calls your Python function once for each new input signature,
# and records the TensorFlow operations as a graph. This is a trace. Later calls with the same signature run the graph, without
# Python. During a trace a variable has no value that Python could convert.
#
# Keras 3 raises when it calls `numpy()` in the trace. Under a strategy, Keras 2 raises earlier: it reads variables in
# cross-replica context only, and the function given to `strategy.run` runs in replica context. Keras 2 therefore refuses in an
# eager `strategy.run` too. Keras 3 does not.
#
# The picture shows reading the weights in three places, eagerly and in a trace. See
# [tracing](https://www.tensorflow.org/guide/function#tracing) in TensorFlow's guide.

# %%
two = session.setup.but(strategy="mirrored", devices=2)


def reads(model):
    """Does reading the weights work here?"""
    try:
        return len(model.get_weights()) == 2
    except (RuntimeError, NotImplementedError):
        return False


def places(setup):
    """Does reading work in a place, eagerly, and in a trace?"""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def in_scope(read):
        with strategy.scope():
            read()

    def works(place, traced):
        seen = []

        def call():
            place(lambda: seen.append(reads(model)))

        (tf.function(call) if traced else call)()
        return all(seen)

    calls = {"on the host": lambda read: read(), "in the scope": in_scope}
    calls["in strategy.run"] = strategy.run
    return {
        name: [works(place, traced) for traced in (False, True)] for name, place in calls.items()
    }


COLUMNS = ["eager", "in tf.function"]
figures.grid(places(two), COLUMNS, "works", "raises", "Where does get_weights() work?")

# %% [markdown]
# ## The fix
#
# Return tensors from the step, and read them on the host. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
#
# def step():
#     return model.get_weights()[0]
#
# @tf.function
# def train_step():
#     return strategy.run(step)
#
# train_step()  # NotImplementedError: numpy() is only available when eager execution is enabled
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
#
# def step():
#     return tf.identity(model.weights[0])
#
# @tf.function
# def train_step():
#     return strategy.run(step)
#
# print(strategy.experimental_local_results(train_step())[1].numpy())  # [[1.]]
# ```
#
# `strategy.run` returns one tensor per replica. If you need only one copy, call `model.get_weights()` on the host after the step.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def step():
        train(model)
        return [tf.identity(weight) for weight in model.trainable_variables]  # repair

    @tf.function
    def train_step():
        return strategy.run(step)

    copies = [strategy.experimental_local_results(each) for each in train_step()]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(model.get_weights(), copies) for _ in each]
    return Proof("every replica holds the weights that the host reads", got, want)


session.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch `devices` to 1: it still fails, so the place of the weights is not the cause. Switch `keras` to 2, and the message
# changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" (000):
#
# > Accessing them directly outside of the `strategy.scope()` context risks attempting to access weights that are not present on
# > the device executing the `get_weights()` call. The correct approach necessitates retrieving the weights within the
# > `strategy.run` context or employing aggregation mechanisms provided by the distribution strategy.
#
# A run says the opposite: reading outside works, reading in a traced `strategy.run` raises, and it raises on one device too. The
# document is right that each replica has its own copy of every variable.


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
        seen.append(reads(model))

    on_replicas(setup, look)
    return all(seen)


trained, untrained = on_replicas(two, train), on_replicas(two, reads)
parts = [figures.values_of(weight) for weight in trained.trainable_variables]
equal = [np.array_equal(part[0], each) for part in parts for each in part]
session.judges(
    {
        # Read here, outside the scope: where the document expects the error.
        "000-C1": [not reads(untrained), not reads(trained)],
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
# Each step should report the largest weight of the first layer. It raises. Change the step so that it reports this weight from
# inside `tf.function`.


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


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

    def step():
        train(model)
        return tf.reduce_max(model.trainable_variables[0])

    @tf.function
    def train_step():
        return strategy.run(step)

    got = strategy.experimental_local_results(train_step())
    return Proof(
        "the step reports the largest weight", got, [model.get_weights()[0].max()] * len(got)
    )


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): another call that raises inside a replica.
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what else changes when Python runs once per trace.
# - [fm04 weights_path_refused](fm04_weights_path_refused.ipynb): saving the weights instead of reading them.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): a model that was meant to have copies, and has none.
