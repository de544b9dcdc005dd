# %% [markdown]
# # FM31. A step under the scope, but outside every replica, fails
#
# The scope is open, the model was made in it, and the first step of your own loop dies on `DistributedVariable.handle`, or on a
# `merge_call` that `NoneType` does not have.
#
# ```text
# ValueError: DistributedVariable.handle is not available outside the replica context or a `tf.distribute.Strategy.update()` call.
# ```
#
# *Loud, with one message where variables have copies and another where they have none. Strategy matters, device count and Keras
# do not. From document 000.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm31",
    slug="replica_call_in_cross_replica",
    title="A step under the scope, but outside every replica, fails",
    sees="a training step called under `strategy.scope()`, and not through `strategy.run`, raises",
    fix="hand the step to `strategy.run`: the scope makes variables, it runs nothing",
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
    claims=(
        Claim("003-C27", "`strategy.run` and `strategy.reduce` enter the scope themselves", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm31", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You have read that everything distributed belongs under `with strategy.scope():`, and with `model.fit` that was all there was to
# do. So the loop of your own goes under the scope too, in the belief that the scope is what runs it on all devices.

# %%
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, observe, runner

BATCH = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(2, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def train(model):
    """One step, with the loss divided by the replicas, since their gradients are added."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(tf.constant(BATCH)))) / replicas
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        observe(model=model.variables)
        train(model)  # guilty: the scope is open, but no replica is running


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# There are two kinds of places. In *replica* context you are one of several and own one copy of each variable. Under the scope
# you are in *cross-replica* context: above all of them, where you make variables and hand out work. A gradient is taken for one
# copy, so the tape asks the variable for its handle, and above the replicas there is none to give. Where variables have no
# copies, the optimizer fails instead: it asks for the replica it runs in, and gets `None`.
#
# Without any scope the step works: Python starts in the replica context of the default strategy. So it is the scope itself that
# makes this failure.
#
# The picture is made by calling each method in three places. See [the glossary of
# `tf.distribute`](https://www.tensorflow.org/api_docs/python/tf/distribute#glossary) on the two contexts.

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


def make_counter():
    """One number per replica, added up by whoever reads it."""
    return tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def take_gradient(model, counter, metric):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.constant(BATCH)))
    tape.gradient(loss, model.trainable_variables)


def apply_gradients(model, counter, metric):
    weights = model.trainable_variables
    model.optimizer.apply_gradients([(tf.zeros(weight.shape), weight) for weight in weights])


CALLS = {
    "model(batch)": lambda model, counter, metric: model(tf.constant(BATCH)),
    "tape.gradient": take_gradient,
    "apply_gradients": apply_gradients,
    "metric.update_state": lambda model, counter, metric: metric.update_state([1.0]),
    "counter.assign_add": lambda model, counter, metric: counter.assign_add(1.0),
}


def works(call, *objects):
    try:
        call(*objects)
    except (ValueError, AttributeError):
        return False
    return True


def places(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        made = [make_model(), make_counter(), tf.keras.metrics.Mean()]
        under = [works(call, *made) for call in CALLS.values()]
    seen = {}
    for (name, call), in_scope in zip(CALLS.items(), under):
        inside = []
        strategy.run(lambda call, inside: inside.append(works(call, *made)), args=(call, inside))
        seen[name] = [works(call, *made), in_scope, all(inside)]
    return seen


PLACES = places(two)
COLUMNS = ["no scope", "in the scope", "in a replica"]
figures.grid(PLACES, COLUMNS, "works", "raises", "Which call works where?")

# %% [markdown]
# ## The fix
#
# Hand the step to `strategy.run`. It enters every replica in turn, and there the tape and the optimizer find what they ask for.
# Every copy of every weight is then what the step makes of it on one device.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

        def step():
            train(model)

        runner(strategy)(step)  # repair
    alone = make_model()
    train(alone)
    weights = [checks.variable_of(weight) for weight in model.trainable_variables]
    copies = [strategy.experimental_local_results(weight) for weight in weights]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(alone.get_weights(), copies) for _ in each]
    return Proof("every copy of every weight is that of one device", got, want)


clinic.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, alone.but(strategy="one_device")]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy: `central_storage` and `one_device` keep a single copy, and the message speaks of `merge_call` instead.
# Only `default` has no second context to be in the wrong one of. On Keras 2 the picture has two more red fields: its metrics are
# counters such as the one in the exercise.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 000 opens the scope around its training loops and explains the weights by it. Document 003 has the rule that they need:
# `strategy.run` enters the scope by itself, so a loop needs no scope around it, and one around it replaces no `run`.


# %% tags=["claims"]
def entered(setup):
    """Called without any scope: do `run` and `reduce` know their strategy, and what do they give?"""
    strategy = build_strategy(setup)
    with strategy.scope():
        counter = make_counter()
    current = []

    def count():
        current.append(tf.distribute.get_strategy() is strategy)
        counter.assign_add(tf.constant(4.0))
        return tf.constant(4.0)

    total = strategy.reduce("SUM", strategy.run(count), axis=None)
    everything = 4.0 * strategy.num_replicas_in_sync
    outside = tf.distribute.get_strategy() is not strategy
    same = [float(total) == everything, float(counter.read_value()) == everything]
    return [outside, *current, *same]


clinic.judges({"003-C27": entered(two)})

# %% [markdown]
# ## Exercise
#
# A script counts the examples that the replicas have seen: two each, in a variable with one number per replica. Somebody moved
# the count out of the step, and now it raises. Change it so that the total is right again.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        counter = make_counter()
        counter.assign_add(tf.constant(2.0) * strategy.num_replicas_in_sync)
    want = 2.0 * strategy.num_replicas_in_sync
    return Proof("the counter holds the examples of all replicas", [counter.read_value()], [want])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        counter = make_counter()

    def count():
        counter.assign_add(tf.constant(2.0))

    runner(strategy)(count)
    want = 2.0 * strategy.num_replicas_in_sync
    return Proof("the counter holds the examples of all replicas", [counter.read_value()], [want])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): the reverse, a call that belongs above the
#   replicas and is made inside one.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): what the scope is for, and what its absence does without a word.
