# %% [markdown]
# # FM10. An optimizer refuses variables that it was not built with
#
# You train a new head on a frozen base, then unfreeze the base and train on. The first step with the base raises, and the message
# speaks of an unknown variable that you have known all along.
#
# ```text
# Keras 3  ValueError: Unknown variable: <Variable path=dense_40/kernel, shape=(1, 1), dtype=float32, value=[[1.]]>. This optimizer can only be called for the variables it was originally built with. When working with a new set of variables, you should recreate a new optimizer instance.
# Keras 2  KeyError: 'The optimizer cannot recognize variable kernel:0. This usually means you are trying to call the optimizer to update different parts of the model separately. Please call `optimizer.build(variables)` with the full list of trainable variables before the training loop or use legacy optimizer `tf.keras.optimizers.legacy.SGD.'
# ```
#
# *Loud, with another exception on Keras 2. No strategy changes it. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm10",
    slug="variable_unknown_to_optimizer",
    title="An optimizer refuses variables that it was not built with",
    sees="`apply_gradients` raises once it is given a variable that was not in its first call",
    fix="call `optimizer.build` with every variable that will ever be trained, before the first step",
    document="001",
    switches=("keras",),
    symptoms=(
        Symptom(
            "ValueError",
            r"This optimizer can only be called for the variables it was originally built with",
            keras=(3,),
        ),
        Symptom("KeyError", r"The optimizer cannot recognize variable", keras=(2,)),
    ),
    claims=(
        Claim("001-C2", "applying the gradients of a variable in no checkpoint raises", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm10", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# An optimizer looks like a rule: gradients in, smaller weights out. So you believe that it takes whatever variables you bring,
# and that today's list may be longer than yesterday's.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, runner

STEPS = 2


def make_layers():
    """A base that will be frozen at first, and a head."""
    base = tf.keras.layers.Dense(1, kernel_initializer="ones")
    head = tf.keras.layers.Dense(1, kernel_initializer="ones")
    base.build((None, 1))
    head.build((None, 1))
    return base, head


def make_optimizer():
    return tf.keras.optimizers.SGD(0.01, momentum=0.9)


def batch(step):
    return tf.constant(np.random.default_rng(step).normal(size=(8, 1)).astype("float32"))


def gradients_of(base, head, data, variables):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(head(base(data)) - 1.0))
    return zip(tape.gradient(loss, variables), variables)


# %%
def train(strategy, optimizer, base, head, variables):
    """Some steps that train only these variables."""

    def step(data):
        optimizer.apply_gradients(gradients_of(base, head, data, variables))

    for number in range(STEPS):
        runner(strategy)(step, args=(batch(number),))


def values(*layers):
    return [weight for layer in layers for weight in layer.get_weights()]


def with_two_optimizers(strategy):
    """The same two phases with an optimizer for each layer, which is what one optimizer must come to."""
    with strategy.scope():
        base, head = make_layers()
        optimizers = [make_optimizer(), make_optimizer()]
        for optimizer, layer in zip(optimizers, (base, head)):
            optimizer.build(layer.trainable_variables)
    train(strategy, optimizers[1], base, head, head.trainable_variables)

    def step(data):
        variables = base.trainable_variables + head.trainable_variables
        pairs = list(gradients_of(base, head, data, variables))
        optimizers[0].apply_gradients(pairs[:2])
        optimizers[1].apply_gradients(pairs[2:])

    for number in range(STEPS):
        runner(strategy)(step, args=(batch(number),))
    return values(base, head)


@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        base, head = make_layers()
        optimizer = make_optimizer()
        optimizer.build(head.trainable_variables)
    everything = base.trainable_variables + head.trainable_variables
    train(strategy, optimizer, base, head, head.trainable_variables)
    train(strategy, optimizer, base, head, everything)  # guilty: it was built without the base
    wanted = with_two_optimizers(strategy)
    return Proof("one optimizer does what one for each layer does", values(base, head), wanted)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# An optimizer has a memory: one or two slots for each variable, and an index that leads from the variable to its slots. Both
# are made once, when the optimizer is built, which happens in its first step unless you build it yourself. A variable that
# comes later has no place in that index. Making one in the middle of training would create a variable inside a traced step, so
# Keras refuses; even plain SGD, which has nothing to remember, keeps the index.
#
# A checkpoint plays no part in this, and neither does the name: another variable with the same name and shape is just as unknown.
#
# The picture asks a built optimizer for a step with each of these. See
# [the source of Keras' optimizers](https://github.com/keras-team/keras/blob/master/keras/src/optimizers/base_optimizer.py).

# %%
UNKNOWN = (KeyError, ValueError)


def takes(optimizer, variable):
    try:
        optimizer.apply_gradients([(tf.ones_like(checks.variable_of(variable)), variable)])
    except UNKNOWN:
        return False
    return True


def taken(make, built):
    """Does the optimizer take the variable that it was built with, a twin of the same name, and another one?"""
    base, _ = make_layers()
    twin, other = make_layers()
    optimizer = make()
    if built:
        optimizer.build(base.trainable_variables)
    return [takes(optimizer, layer.trainable_variables[0]) for layer in (base, twin, other)]


TAKEN = {
    "SGD, built with the first": taken(lambda: tf.keras.optimizers.SGD(0.01), True),
    "Adam, built with the first": taken(tf.keras.optimizers.Adam, True),
    "Adam, built by its first step": taken(tf.keras.optimizers.Adam, False),
}
figures.grid(TAKEN, ["the first", "its twin", "another"], "taken", "refused")

# %% [markdown]
# ## The fix
#
# Build the optimizer with all variables that it will ever train, before anything is frozen. A step may then bring fewer of
# them. If the variables are not known in advance, make a new optimizer for the new phase, and accept that it starts without
# momentum.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        base, head = make_layers()
        optimizer = make_optimizer()
        everything = base.trainable_variables + head.trainable_variables
        optimizer.build(everything)  # repair
    train(strategy, optimizer, base, head, head.trainable_variables)
    train(strategy, optimizer, base, head, everything)
    wanted = with_two_optimizers(strategy)
    return Proof("one optimizer does what one for each layer does", values(base, head), wanted)


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (one, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch Keras and the exception changes its class and its words. Nothing else does: no strategy gives an optimizer slots for
# variables that it has never seen.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 expects an error when a variable outside the checkpoint gets gradients. Whether it is in a checkpoint makes no
# difference: an optimizer takes both kinds in its first step, and neither once it is built without them.


# %% tags=["claims"]
def refused(tracked, built):
    """Whether an optimizer refuses one more variable, which a checkpoint tracks or does not."""
    base, _ = make_layers()
    more, optimizer = tf.Variable(1.0), make_optimizer()
    checkpoint = tf.train.Checkpoint(base=base, optimizer=optimizer)
    if tracked:
        checkpoint.more = more
    if built:
        optimizer.build(base.trainable_variables)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save(f"{folder}/training")
    return not takes(optimizer, more)


clinic.judges(
    {
        # Does it matter to the optimizer that the variable is in no checkpoint?
        "001-C2": [refused(False, built) and not refused(True, built) for built in (False, True)],
    },
)

# %% [markdown]
# ## Exercise
#
# Two models, one optimizer, as in many first attempts at adversarial training. Make both of them learn.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        generator, critic = make_layers()
        optimizer = make_optimizer()
        optimizer.build(generator.trainable_variables)
    before = values(generator, critic)
    train(strategy, optimizer, generator, critic, generator.trainable_variables)
    train(strategy, optimizer, generator, critic, critic.trainable_variables)
    moved = [np.abs(new - old).max() > 0 for new, old in zip(values(generator, critic), before)]
    return Proof("every weight of both models has moved", moved, [True] * 4)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        generator, critic = make_layers()
        optimizer, optimizer_of_critic = make_optimizer(), make_optimizer()
        optimizer.build(generator.trainable_variables)
        optimizer_of_critic.build(critic.trainable_variables)
    before = values(generator, critic)
    train(strategy, optimizer, generator, critic, generator.trainable_variables)
    train(strategy, optimizer_of_critic, generator, critic, critic.trainable_variables)
    moved = [np.abs(new - old).max() > 0 for new, old in zip(values(generator, critic), before)]
    return Proof("every weight of both models has moved", moved, [True] * 4)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): an optimizer that has not been built at all.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): where the variables that it does not know come from.
