# %% [markdown]
# # FM14. A copied layer does not share its weights
#
# One encoder is to read both the questions and the answers. The second half of the model gets a copy of it, training goes
# well, and at the end there are two encoders, each of which has learned from half of the gradient.
#
# *Silent, under every strategy and both Keras generations. From document 002.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm14",
    slug="weights_not_shared",
    title="A copied layer does not share its weights",
    sees="two layers that should stay one drift apart in training, and nothing was raised",
    fix="call the same layer object twice, instead of copying it",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(Symptom("SilentFailure", r"\d+ of \d+ variables are not shared"),),
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
import helpers

clinic = helpers.open("fm14", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You want one encoder in two places, and there is a function called `clone_model`. You believe that a clone of a layer is
# that layer in another place. Every shape is right, nothing complains, and the loss goes down.

# %%
import copy

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures

RATE = 0.1
STEPS = 3


def make_encoder():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(2, use_bias=False)]
    return tf.keras.Sequential(layers)


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


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        questions = make_encoder()
        answers = tf.keras.models.clone_model(questions)  # guilty: the same layers, other weights
        pair = Pair(questions, answers)
    train(strategy, pair)
    checks.assert_shared(questions, answers)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Weights are shared by being the same objects. Every way to copy a layer makes new variables: `clone_model` and
# `from_config` copy the recipe and start from fresh random values, `deepcopy` and `set_weights` copy today's values as well.
# Equal values are the treacherous ones, since every look at them before training says that all is well.
#
# Two variables are two entries in `trainable_variables`, with two gradients. Each gradient is right for its own half of the
# loss, so nothing is wrong for TensorFlow to find.
#
# The picture asks three questions about five ways to make the second encoder. See
# [shared layers](https://www.tensorflow.org/guide/keras/functional_api#shared_layers) in TensorFlow's guide.

# %%
alone = clinic.setup.but(strategy="default", devices=1)


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
# Use the same object in both places; a layer may be called as often as you like. `checks.assert_shared(questions, answers)`
# can go into your own script: it compares variables by identity, which no number of equal values can imitate.


# %%
def descended(kernel):
    """The same descent of one shared kernel, done in NumPy: the gradient has a part from either half."""
    questions, answers = batches()
    for _ in range(STEPS):
        part = questions.T @ (questions @ kernel - 1.0)
        other = answers.T @ (answers @ kernel + 1.0)
        kernel = kernel - RATE * (part + other) * 2 / (len(questions) * kernel.shape[1])
    return kernel


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        questions = make_encoder()
        answers = questions  # repair
        pair = Pair(questions, answers)
    want = descended(questions.get_weights()[0])
    train(strategy, pair)
    checks.assert_shared(questions, answers)
    return Proof(
        "both halves end with the weights of one encoder that had the whole gradient",
        [questions.get_weights()[0], answers.get_weights()[0]],
        [want, want],
        tolerance=1e-5,
    )


clinic.proves(fixed)

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (alone, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# A strategy makes copies of its own, one of each variable for every device, and keeps those equal. It does so for both
# encoders, and does not know that they should be one.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002 lists this among its causes, without an example, and it is right. The lost part can be computed: the gradient of
# the shared kernel is the sum of what the two copies get.


# %% tags=["claims"]
def gradients_of(pair):
    with tf.GradientTape() as tape:
        loss = pair(tf.constant(batches()))
    return [np.asarray(each) for each in tape.gradient(loss, pair.trainable_variables)]


encoder = make_encoder()
(whole,) = gradients_of(Pair(encoder, encoder))
part, other = gradients_of(Pair(encoder, with_values(encoder)))
clinic.judges(
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
    kernel = checks.variable_of(encoder.trainable_variables[0])
    tied = tf.Variable(tf.transpose(kernel))

    def decode(code):
        return tf.matmul(code, tied)

    fit(encoder, decode, [kernel, tied])
    return Proof(
        "the decoder is the encoder, transposed", [decode(tf.eye(2))], [tf.transpose(kernel)]
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    encoder = make_encoder()
    kernel = checks.variable_of(encoder.trainable_variables[0])

    def decode(code):
        return tf.matmul(code, kernel, transpose_b=True)

    fit(encoder, decode, [kernel])
    return Proof(
        "the decoder is the encoder, transposed", [decode(tf.eye(2))], [tf.transpose(kernel)]
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): the copy that is made in every batch.
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): the other list of variables that is not what it seems.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the copies that you do want, one per device.
