# %% [markdown]
# # FM32. An optimizer that makes its slots in the first traced step fails
#
# Plain SGD trains. You write Adam instead, and the first step asks you to feed a placeholder, which you have never made and
# cannot find.
#
# ```text
# Keras 3  InvalidArgumentError: You must feed a value for placeholder tensor with dtype int32
# ```
#
# *Loud, on Keras 3 only, with `MirroredStrategy` on two devices or more. From document 000.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
        ),
    ),
    claims=(
        Claim(
            "003-C28",
            "a model remembers its scope: fit, evaluate, predict and save work outside it",
            "true",
        ),
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

clinic = helpers.open("fm32", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Model and optimizer are made in the scope, the step is traced, `strategy.run` calls it: all by the book. You believe that an
# optimizer is complete once it is made, and the loop that worked with SGD proves it.

# %%
import tempfile

import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats, observe

STEPS, BATCH = 2, [[1.0], [2.0]]


def build_plain(setup):
    """What `tf.distribute.MirroredStrategy(devices)` makes, with its own way to add up gradients.

    Each gets numbers of its own for its sums, as in TensorFlow's tests: two sizes in one process would mix theirs up.
    """
    strategy = build_strategy(setup)
    if setup.strategy != "mirrored":
        return strategy
    tf.distribute.MirroredStrategy._collective_key_base += 1000
    return tf.distribute.MirroredStrategy(strategy.extended.worker_devices)


def make_model():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    return tf.keras.Sequential(layers)


def built(optimizer, model):
    """Makes the optimizer's variables now, and not in its first step."""
    optimizer.build(model.trainable_variables)
    return optimizer


def eager(step):
    return step


def train(strategy, model, optimizer, trace=tf.function):
    """Some steps, with the loss divided by the replicas, since their gradients are added."""

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.constant(BATCH))))
            loss /= strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    traced = trace(step)
    for _ in range(STEPS):
        strategy.run(traced)


def proof(strategy, model, optimizer, own):
    """Every copy of every weight, and the count of steps, against the same training without a strategy."""
    alone = make_model()
    train(tf.distribute.get_strategy(), alone, own, eager)
    weights = [checks.variable_of(weight) for weight in model.trainable_variables]
    copies = [strategy.experimental_local_results(weight) for weight in weights]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(alone.get_weights(), copies) for _ in each]
    return Proof(
        "every copy of every weight and the count of steps are those of one device",
        [*got, optimizer.iterations.numpy()],
        [*want, STEPS],
    )


# %%
@experiment
def broken(setup):
    strategy = build_plain(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.1)  # guilty: its slots wait for the first step
    observe(model=model.variables)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer, tf.keras.optimizers.Adam(0.1))


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Adam keeps two slots beside each weight, and makes them in its first step, while that step is being traced. A graph runs often
# and must make its variables once, so TensorFlow tries to take their first values out of the graph. The second copy of a variable
# starts with the value of the first, and that it cannot take out. It falls back on a condition around the whole step: make the
# variables, or find them made.
#
# `MirroredStrategy` adds gradients up with collectives, and numbers every sum when the graph is called. The condition does not
# pass that number on. The number is the placeholder.
#
# One device has no second copy, SGD has no slots, Keras 2 makes its slots outside the graph, and a sum that is made on one device
# has no number.
#
# The picture trains in all these ways. See [the source of
# `_next_instance_key`](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/distribute/cross_device_utils.py).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


def trains(strategy, make_optimizer, trace):
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer(model)
    try:
        train(strategy, model, optimizer, trace)
    except tf.errors.InvalidArgumentError:
        return False
    return True


def sgd(model):
    return tf.keras.optimizers.SGD(0.1)


def adam(model):
    return tf.keras.optimizers.Adam(0.1)


def built_adam(model):
    return built(adam(model), model)


WAYS = {
    "Adam": (build_plain, adam),
    "SGD": (build_plain, sgd),
    "Adam, summed on one device": (build_strategy, adam),
    "Adam, built": (build_plain, built_adam),
}
TRAINS = {
    name: [trains(build(two), make, trace) for trace in (eager, tf.function)]
    for name, (build, make) in WAYS.items()
}
figures.grid(
    TRAINS, ["eager", "traced"], "trains", "raises", "Which optimizer trains on two devices?"
)

# %% [markdown]
# ## The fix
#
# Build the optimizer in the scope, with the variables that it will train. The slots exist then, and the first step is like any
# other. Where you cannot reach the optimizer, `cross_device_ops=tf.distribute.ReductionToOneDevice()` in the making of the
# strategy helps too: that is the third row of the picture.


# %%
@experiment
def fixed(setup):
    strategy = build_plain(setup)
    with strategy.scope():
        model = make_model()
        optimizer = built(tf.keras.optimizers.Adam(0.1), model)  # repair
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer, tf.keras.optimizers.Adam(0.1))


clinic.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set one device, another strategy or Keras 2, and the failure is gone: on a laptop the loop works. Set two devices or more of
# `mirrored` on Keras 3, and it is back.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# All loops of document 000 have an Adam that nobody builds. Untraced, as they stand, they do not show this failure; the first
# `tf.function` will. Document 003 says that you may leave it to `strategy.run` or to `fit` to open the scope for whatever makes
# variables late. Both do open it, and `fit` builds the optimizer before its first step. `run` does not, and an open scope is not
# enough for slots that are made inside a graph.


# %% tags=["claims"]
def works_outside_scope(setup):
    """fit, evaluate, predict and save without a scope, with an Adam that nobody has built."""
    strategy = build_plain(setup)
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.Adam(0.1), tf.keras.losses.MeanSquaredError())
    data = tf.ones((8, 1))
    before = model.get_weights()[0].copy()
    model.fit(data, data * 2.0, batch_size=8, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, "keras")
    trained = bool((model.get_weights()[0] != before).all())
    evaluated = model.evaluate(data, data, batch_size=8, verbose=0) >= 0.0
    return [trained, evaluated, model.predict(data, batch_size=8, verbose=0).shape == (8, 1)]


def entered(setup):
    """Called without any scope: does `run` know its strategy, do slots have copies, and what does `reduce` give?"""
    strategy, current = build_plain(setup), []
    with strategy.scope():
        model = make_model()
        optimizer = adam(model)

    def one():
        current.append(tf.distribute.get_strategy() is strategy)
        return tf.constant(1.0)

    total = strategy.reduce("SUM", strategy.run(one), axis=None)
    train(strategy, model, optimizer, eager)
    places = {len(figures.copies(slot)) for slot in optimizer.variables[-4:]}
    return [*current, float(total) == strategy.num_replicas_in_sync, places == {2}]


clinic.judges({"003-C28": works_outside_scope(two), "003-C27": entered(two)})

# %% [markdown]
# ## Exercise
#
# A script with SGD has run for a year. Somebody has given it momentum, and now it fails. Mend it, and keep the momentum.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_plain(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer, tf.keras.optimizers.SGD(0.1, momentum=0.9))


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_plain(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer, tf.keras.optimizers.SGD(0.1, momentum=0.9))


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): an optimizer that is built, but in the wrong scope.
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): what else comes of slots that are made late, in silence.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): a loop of your own that fails on every Keras.
