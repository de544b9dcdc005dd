# %% [markdown]
# # FM31. A step under the scope, but outside every replica, fails
#
# The scope is open, the model was made in it, and the first step of your own loop raises. With strategies whose variables have no
# copies, such as `OneDeviceStrategy`, the error is `AttributeError: 'NoneType' object has no attribute 'merge_call'`.
#
# ```text
# ValueError: DistributedVariable.handle is not available outside the replica context or a
# `tf.distribute.Strategy.update()` call.
# ```
#
# *Loud. The strategy chooses the message; device count and Keras generation do not. Documents: the answer on `get_weights()` in
# `strategy.run` (000) and the reference of `TPUStrategy` (003).*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

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
    claims=(),
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
# ## What goes wrong
#
# With `model.fit` it was enough to make the model under `with strategy.scope():`. Now you write the training loop yourself. You
# put it under the scope too, and believe that the scope runs it on all devices.

# %%
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, observe

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


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `strategy.scope()` creates variables for the strategy. It runs nothing on the devices. Code in the scope is in *cross-replica
# context*. The function that is given to `strategy.run` is called in *replica context*, once for each replica, and sees one copy
# of each variable.
#
# A gradient is taken for one copy. In cross-replica context the tape asks a variable with several copies for its handle, and
# there is no single one. Where variables have no copies, the optimizer raises instead: it asks for the replica context and gets
# `None`.
#
# Without any scope the step works, because Python starts in the replica context of the default strategy.
#
# The picture shows each call in three places. See [the glossary of
# `tf.distribute`](https://www.tensorflow.org/api_docs/python/tf/distribute#glossary) on the two contexts.

# %%
two = session.setup.but(strategy="mirrored", devices=2)


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
# Give the step to `strategy.run`. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight = tf.Variable(3.0)
#     with tf.GradientTape() as tape:
#         loss = weight * weight
#     tape.gradient(loss, weight)  # ValueError: DistributedVariable.handle is not available outside the replica context
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight = tf.Variable(3.0)
#
# def step():
#     with tf.GradientTape() as tape:
#         loss = weight * weight
#     return tape.gradient(loss, weight)
#
# print(strategy.experimental_local_results(strategy.run(step))[1].numpy())  # 6.0
# ```
#
# In a loop, call `strategy.run` from a `@tf.function`, as the experiment does. Each copy of each weight is then what the step
# makes of it on one device.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()

        def step():
            train(model)

        @tf.function
        def train_step():
            strategy.run(step)

        train_step()  # repair
    alone = make_model()
    train(alone)
    copies = [figures.values_of(weight) for weight in model.trainable_variables]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(alone.get_weights(), copies) for _ in each]
    return Proof("every copy of every weight is that of one device", got, want)


session.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy: with `central_storage` and `one_device` the message speaks of `merge_call`. Without a strategy there is
# only one context, so this error cannot occur.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `TPUStrategy` (003):
#
# > Simply calling model(..) does not automatically enter the captured scope -- only high level training framework APIs support
# > this behavior
#
# This is easily read as advice to open the scope around a step. The picture says what comes of it: the model can be called in the
# scope, and no gradient can be taken there. The same page says:
#
# > Some strategy APIs (such as strategy.run and strategy.reduce) which require to be in a strategy's scope, enter the scope
# > automatically
#
# So a loop needs no scope around it. This sentence is judged in [fm23 variable_outside_scope](fm23_variable_outside_scope.ipynb).
# The answer on `get_weights()` in `strategy.run` (000) opens the scope around its loops; they are judged in [fm03
# scope_mismatch](fm03_scope_mismatch.ipynb).

# %% [markdown]
# ## Exercise
#
# A script counts the examples that the replicas have seen: two each, in a variable with one number per replica. The count was
# moved out of the step, into the scope, and now it raises. Change it so that the total is right.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        counter = make_counter()
        counter.assign_add(tf.constant(2.0) * strategy.num_replicas_in_sync)
    want = 2.0 * strategy.num_replicas_in_sync
    return Proof("the counter holds the examples of all replicas", [counter.read_value()], [want])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        counter = make_counter()

    def count():
        counter.assign_add(tf.constant(2.0))

    @tf.function
    def count_step():
        strategy.run(count)

    count_step()
    want = 2.0 * strategy.num_replicas_in_sync
    return Proof("the counter holds the examples of all replicas", [counter.read_value()], [want])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): the reverse, a cross-replica call inside a
#   replica.
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): a model that was made outside the scope, and cannot be trained in it.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): what the scope is for, and what happens without it.
