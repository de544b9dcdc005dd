# %% [markdown]
# # FM14. A copied layer does not share its weights
#
# One encoder is to read both the questions and the answers. The second half of the model gets a copy of it. Training raises
# nothing, and at the end there are two encoders, each of which has learned from half of the gradient.
#
# ```text
# weight of the trained encoder 0.725, with the gradient of both halves 0.202
# ```
#
# *Silent, under every strategy and both Keras generations. Switches: `strategy`, `keras`. From document 002, "How can
# inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm14",
    slug="weights_not_shared",
    title="A copied layer does not share its weights",
    sees="two layers that should stay one drift apart in training, and nothing was raised",
    fix="call the same layer object twice, instead of copying it",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom("SilentFailure", r"both halves are one encoder that had the whole gradient"),
    ),
    claims=(
        Claim("002-C7", "copies that are meant to be shared lose part of the gradient", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm14", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You want one encoder in two places, and there is a function called `clone_model`. You believe that a clone of a layer is
# that layer in another place. Every shape is right, nothing is raised, and the loss goes down.

# %%
import copy

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

RATE = 0.1
STEPS = 3


def make_encoder(start="glorot_uniform"):
    dense = tf.keras.layers.Dense(2, use_bias=False, kernel_initializer=start)
    return tf.keras.Sequential([tf.keras.Input((3,)), dense])


def batches():
    """Four questions and four answers."""
    return np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")


class Pair(tf.keras.Model):
    """Pulls the codes of questions towards 1 and those of answers towards -1."""

    def __init__(self, questions, answers):
        super().__init__()
        self.questions, self.answers = questions, answers

    def call(self, inputs):
        of_questions = tf.reduce_mean(tf.square(self.questions(inputs[0]) - 1.0))
        of_answers = tf.reduce_mean(tf.square(self.answers(inputs[1]) + 1.0))
        return of_questions + of_answers


def train(strategy, pair):
    """Some steps of gradient descent, every replica with the same data and its share of the loss."""
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(RATE)
    share = 1.0 / strategy.num_replicas_in_sync

    def step(inputs):
        with tf.GradientTape() as tape:
            loss = share * pair(inputs)
        variables = pair.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def train_step(inputs):
        strategy.run(step, args=(inputs,))

    for _ in range(STEPS):
        train_step(tf.constant(batches()))


def descended(kernel):
    """The same descent of one shared kernel, done in NumPy: the gradient has a part from either half."""
    questions, answers = batches()
    for _ in range(STEPS):
        part = questions.T @ (questions @ kernel - 1.0)
        other = answers.T @ (answers @ kernel + 1.0)
        kernel = kernel - RATE * (part + other) * 2 / (len(questions) * kernel.shape[1])
    return kernel


def proof(questions, answers):
    """Both kernels after the training, beside that of one encoder."""
    got, want = [*questions.get_weights(), *answers.get_weights()], descended(np.ones((3, 2)))
    what = "both halves are one encoder that had the whole gradient"
    return Proof(what, got, [want, want], tolerance=1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        questions = make_encoder("ones")
        answers = tf.keras.models.clone_model(questions)  # guilty: the same layers, other weights
        pair = Pair(questions, answers)
    train(strategy, pair)
    return proof(questions, answers)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Two layers share weights if both use the same variable objects. Every way to copy a layer makes new variables. `clone_model` and
# `from_config` copy the configuration and initialise the weights again. `deepcopy` and `set_weights` copy the present values too;
# a look at the values before training then shows no difference.
#
# Two variables are two entries in `trainable_variables`, with two gradients. Each gradient is right for its own half of the
# loss, so TensorFlow has nothing to report.
#
# The picture asks three questions about five ways to make the second encoder. See
# [shared layers](https://www.tensorflow.org/guide/keras/functional_api#shared_layers) in TensorFlow's guide.

# %%
alone = session.setup.but(strategy="default", devices=1)


def with_values(encoder):
    made = tf.keras.models.clone_model(encoder)
    made.set_weights(encoder.get_weights())
    return made


WAYS = {
    "the encoder itself": lambda encoder: encoder,
    "clone_model": tf.keras.models.clone_model,
    "from_config": lambda encoder: type(encoder).from_config(encoder.get_config()),
    "deepcopy": copy.deepcopy,
    "clone, set_weights": with_values,
}


def same_values(first, second):
    return np.allclose(first.get_weights()[0], second.get_weights()[0])


def same_object(first, second):
    try:
        checks.assert_shared(first, second)
    except checks.SilentFailure:
        return False
    return True


def asked(way):
    first = make_encoder()
    second = way(first)
    before = same_values(first, second)
    train(build_strategy(alone), Pair(first, second))
    return [same_object(first, second), before, same_values(first, second)]


ASKED = {name: asked(way) for name, way in WAYS.items()}
COLUMNS = ["one object", "equal before", "equal after"]
figures.grid(ASKED, COLUMNS, "yes", "no", "Which second encoder is the first one?")

# %% [markdown]
# ## The fix
#
# Use the same object in both places; a layer may be called as often as you like. Before:
#
# ```python
# import tensorflow as tf
#
# dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
# first = tf.keras.Sequential([tf.keras.Input((1,)), dense])
# second = tf.keras.models.clone_model(first)
# with tf.GradientTape() as tape:
#     loss = tf.reduce_sum(first(tf.ones((1, 1))) + second(2 * tf.ones((1, 1))))
# weights = tape.watched_variables()
# tf.keras.optimizers.SGD(0.25).apply_gradients(zip(tape.gradient(loss, weights), weights))
# print(first.get_weights()[0], second.get_weights()[0])  # [[0.75]] [[0.5]]
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
# first = tf.keras.Sequential([tf.keras.Input((1,)), dense])
# second = first
# with tf.GradientTape() as tape:
#     loss = tf.reduce_sum(first(tf.ones((1, 1))) + second(2 * tf.ones((1, 1))))
# weights = tape.watched_variables()
# tf.keras.optimizers.SGD(0.25).apply_gradients(zip(tape.gradient(loss, weights), weights))
# print(first.get_weights()[0], second.get_weights()[0])  # [[0.25]] [[0.25]]
# ```
#
# `checks.assert_shared(questions, answers)` compares variables by identity, and would have told you before training.
# `print(pasted(checks.assert_shared))`, after `from strategy_clinic import pasted`, prints it with all that it needs.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        questions = make_encoder("ones")
        answers = questions  # repair
        pair = Pair(questions, answers)
    train(strategy, pair)
    checks.assert_shared(questions, answers)
    return proof(questions, answers)


session.proves(fixed)

# %%
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy: the outcome stays the same. `MirroredStrategy` copies each variable to every device and keeps these copies
# equal, for each of the two encoders by itself.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002, "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?", names this
# cause, without an example:
#
# > If different parts of the training loop inadvertently create separate copies of variables intended to be shared across
# > iterations, the gradients accumulated will not reflect the complete picture, causing inconsistent updates.
#
# The run agrees: the gradient of the shared kernel is the sum of what the two copies get.


# %% tags=["claims"]
def gradients_of(pair):
    with tf.GradientTape() as tape:
        loss = pair(tf.constant(batches()))
    return [np.asarray(each) for each in tape.gradient(loss, pair.trainable_variables)]


encoder = make_encoder()
(whole,) = gradients_of(Pair(encoder, encoder))
part, other = gradients_of(Pair(encoder, with_values(encoder)))
session.judges(
    {
        "002-C7": [
            np.allclose(whole, part + other, atol=1e-6),
            not np.allclose(whole, part, atol=1e-3),
            not np.allclose(whole, other, atol=1e-3),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This autoencoder ties its decoder to its encoder: the decoder's kernel is the encoder's, transposed. It is so before the
# training, and not after it. Tie them in a way that lasts.


# %% tags=["exercise"]
def fit(encode, decode, variables):
    """Some steps towards an autoencoder that gives back what it got."""
    data = tf.constant(batches()[0])
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(decode(encode(data)) - data))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(RATE * gradient)


@experiment
def attempt(setup):
    encoder = make_encoder()
    kernel = encoder.trainable_variables[0]
    tied = tf.Variable(tf.transpose(tf.convert_to_tensor(kernel)))

    def decode(code):
        return tf.matmul(code, tied)

    fit(encoder, decode, [kernel, tied])
    want = tf.transpose(tf.convert_to_tensor(kernel))
    return Proof("the decoder is the encoder, transposed", [decode(tf.eye(2))], [want])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    encoder = make_encoder()
    kernel = encoder.trainable_variables[0]

    def decode(code):
        return tf.matmul(code, tf.convert_to_tensor(kernel), transpose_b=True)

    fit(encoder, decode, [kernel])
    want = tf.transpose(tf.convert_to_tensor(kernel))
    return Proof("the decoder is the encoder, transposed", [decode(tf.eye(2))], [want])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): variables that are made anew in every batch.
# - [fm13 gradients_inconsistent](fm13_gradients_inconsistent.ipynb): gradients that are missing for a layer.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the copies that you want, one for each device.
