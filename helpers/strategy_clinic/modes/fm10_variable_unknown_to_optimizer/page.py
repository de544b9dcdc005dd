# %% [markdown]
# # FM10. An optimizer refuses variables that it was not built with
#
# You train a new head on a frozen base. Then you unfreeze the base, compile again with the optimizer that you have, and train on.
# The first step raises, and the message calls a weight of your own model unknown.
#
# ```text
# Keras 3  ValueError: Unknown variable: … This optimizer can only be called for the variables it was originally
# built with. When working with a new set of variables, you should recreate a new optimizer instance.
# Keras 2  KeyError: … The optimizer cannot recognize variable … This usually means you are trying to call the
# optimizer to update different parts of the model separately. …
# ```
#
# *Loud, under every strategy, with another exception on Keras 2. Switch: `keras`. A neighbour of document 001,
# "Why am I getting a Checkpointing error with apply_gradients()?"*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm10",
    slug="variable_unknown_to_optimizer",
    title="An optimizer refuses variables that it was not built with",
    sees="`fit` or `apply_gradients` raises once the optimizer gets a variable that its first step did not have",
    fix="compile again with a new optimizer, or call `optimizer.build` with every variable before the first step",
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
    claims=(),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm10", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You have read that a model must be compiled again after `trainable` has changed, so you do that. The optimizer has worked well,
# so you pass the same object. You believe that an optimizer is a rule, gradients in and new weights out, which fits any list of
# variables.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

RATE, STEPS = 0.1, 2


def examples():
    return np.linspace(0.5, 2.0, 8, dtype="float32").reshape(8, 1)


def make_model():
    """A base and a head, each with one weight that starts at 1; the base is frozen."""
    base = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", trainable=False)
    head = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), base, head])


def fit(model):
    """Each epoch is one step on all examples; the target is always 3."""
    model.fit(examples(), np.full((8, 1), 3.0), batch_size=8, epochs=STEPS, verbose=0)


def values(model):
    return [layer.get_weights()[0] for layer in model.layers[-2:]]


def on_paper():
    """The same steps by hand: first the head, then both."""
    base, head, data = 1.0, 1.0, examples()
    for step in range(2 * STEPS):
        slope = np.mean(2 * (base * head * data - 3.0) * data)
        unfrozen = step >= STEPS
        base, head = base - RATE * slope * head * unfrozen, head - RATE * slope * base
    return [np.full((1, 1), base), np.full((1, 1), head)]


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model, optimizer = make_model(), tf.keras.optimizers.SGD(RATE)
        model.compile(optimizer, loss="mse")
    fit(model)
    model.layers[0].trainable = True
    with strategy.scope():
        model.compile(optimizer, loss="mse")  # guilty: it was built without the base
    fit(model)
    return Proof("base and head are where the steps by hand lead", values(model), on_paper())


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# An optimizer has a state. For each variable it keeps slot variables, such as the momentum, and it keeps an index from the
# variable to its slots. Both are made when the optimizer is built, which happens in its first step unless you call `build`
# yourself. A variable that was frozen then is in neither.
#
# New slots would be new variables in the middle of training, often inside a traced step. Keras therefore refuses the variable.
# Plain SGD has no slots, but keeps the index, so it refuses too. `compile` does not reset the optimizer that it is given.
#
# Without `compile` nothing is raised: `fit` goes on with the list of weights from before, and the base stays frozen. On paper
# both weights have moved. The picture shows what `fit` does after unfreezing. See
# [fine-tuning](https://www.tensorflow.org/guide/keras/transfer_learning#fine-tuning) in TensorFlow's guide.


# %%
def after_unfreezing(compile_again, build_first=False):
    """What the second `fit` does to the base and to the head."""
    model, optimizer = make_model(), tf.keras.optimizers.SGD(RATE)
    base = model.layers[0]
    if build_first:
        optimizer.build(model.variables)
    model.compile(optimizer, loss="mse")
    fit(model)
    before = values(model)
    base.trainable = True
    compile_again(model, optimizer)
    try:
        fit(model)
    except (ValueError, KeyError):  # Keras 3 and Keras 2
        return ["raises", "raises"]
    return ["trains" if np.any(a != b) else "frozen" for a, b in zip(values(model), before)]


def with_the_same(model, optimizer):
    model.compile(optimizer, loss="mse")


def with_a_new_one(model, optimizer):
    model.compile(tf.keras.optimizers.SGD(RATE), loss="mse")


AFTER = {
    "no compile": after_unfreezing(lambda model, optimizer: None),
    "compile, same optimizer": after_unfreezing(with_the_same),
    "compile, same optimizer,\nbuilt with all weights": after_unfreezing(with_the_same, True),
    "compile, new optimizer": after_unfreezing(with_a_new_one),
}
figures.words(AFTER, ["base", "head"], ["frozen", "raises"], "fit after unfreezing")

# %% [markdown]
# ## The fix
#
# Compile again with a new optimizer. Before:
#
# ```python
# import tensorflow as tf
#
# base = tf.keras.layers.Dense(1, kernel_initializer="ones", trainable=False)
# head = tf.keras.layers.Dense(1, kernel_initializer="ones")
# model, optimizer = tf.keras.Sequential([base, head]), tf.keras.optimizers.SGD(0.125)
# model.compile(optimizer, loss="mse")
# model.fit(tf.ones((4, 1)), 2 * tf.ones((4, 1)), verbose=0)
# base.trainable = True
# model.compile(optimizer, loss="mse")
# model.fit(tf.ones((4, 1)), 2 * tf.ones((4, 1)), verbose=0)  # ValueError: Unknown variable
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# base = tf.keras.layers.Dense(1, kernel_initializer="ones", trainable=False)
# head = tf.keras.layers.Dense(1, kernel_initializer="ones")
# model = tf.keras.Sequential([base, head])
# model.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
# model.fit(tf.ones((4, 1)), 2 * tf.ones((4, 1)), verbose=0)
# base.trainable = True
# model.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
# model.fit(tf.ones((4, 1)), 2 * tf.ones((4, 1)), verbose=0)
# print(base.get_weights()[0])  # [[1.15625]]
# ```
#
# The new optimizer starts without momentum. To keep it, call `optimizer.build(model.variables)` before the first step: this
# optimizer then knows every weight, and a step may bring fewer of them.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model, optimizer = make_model(), tf.keras.optimizers.SGD(RATE)
        model.compile(optimizer, loss="mse")
    fit(model)
    model.layers[0].trainable = True
    with strategy.scope():
        model.compile(tf.keras.optimizers.SGD(RATE), loss="mse")  # repair
    fit(model)
    return Proof("base and head are where the steps by hand lead", values(model), on_paper())


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
SETUPS += [one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch Keras: the exception has another class and other words. Then switch to `mirrored`: the outcome stays the same. Under
# `parameter_server`, and on Keras 3 under `multi_worker`, the first `fit` raises another error; this mode does not get that far.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001, "Why am I getting a Checkpointing error with apply_gradients()?", expects an error from `apply_gradients` too, but
# for variables that the checkpoint does not track:
#
# > when applying gradients and if the untracked variable is part of the gradients you will encounter the error.
#
# On this page no checkpoint exists, and the error comes all the same: an optimizer asks which variables it was built with. The
# sentence itself is judged in [fm05 untracked_variable](fm05_untracked_variable.ipynb).

# %% [markdown]
# ## Exercise
#
# A generator and a critic, each with a head to train, as in many first attempts at adversarial training. Both are compiled with
# one optimizer object. Make both learn.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        generator, critic, optimizer = make_model(), make_model(), tf.keras.optimizers.SGD(RATE)
        generator.compile(optimizer, loss="mse")
        critic.compile(optimizer, loss="mse")
    fit(generator)
    fit(critic)
    return Proof(
        "both learned the same from the same data", values(critic)[1:], values(generator)[1:]
    )


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        generator, critic = make_model(), make_model()
        generator.compile(tf.keras.optimizers.SGD(RATE), loss="mse")
        critic.compile(tf.keras.optimizers.SGD(RATE), loss="mse")
    fit(generator)
    fit(critic)
    return Proof(
        "both learned the same from the same data", values(critic)[1:], values(generator)[1:]
    )


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): a restore into an optimizer that has not been built.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): variables that are unknown because every call makes new ones.
# - [fm32 optimizer_built_in_replica](fm32_optimizer_built_in_replica.ipynb): an optimizer that is built inside a traced step.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): an update that has no gradients at all.
