# %% [markdown]
# # FM33. A tensor that leaves its `tf.function` cannot be used elsewhere
#
# One `tf.function` stores a tensor in an attribute or a dictionary, and another one uses it. TensorFlow raises where the tensor
# is used: it `is out of scope and cannot be used here`. The line to change is the one that stores it.
#
# ```text
# TypeError: The tensor … cannot be accessed from here, because it was defined in …, which is out of scope.
# ```
#
# *Loud, under every strategy and both Keras generations; silent in the exercise. Document: the answer on `get_weights()` in
# `strategy.run` (000).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm33",
    slug="graph_tensor_leaked",
    title="A tensor that leaves its `tf.function` cannot be used elsewhere",
    sees="a tensor `is out of scope and cannot be used here`: TypeError or InaccessibleTensorError",
    fix="return the tensor and pass it on as an argument, or keep its value in a `tf.Variable`",
    document="000",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "TypeError",
            r"is out of scope and cannot be used here\. Use return values",
        ),
    ),
    claims=(
        Claim("000-C8", "closures that `tf.function` makes by mistake cause such errors", "half"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm33", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# One function computes the mean of a batch, and the next one trains on the batch without this mean. The first function has
# run when the second one starts. You believe that the dictionary then holds a number.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

RATE = 0.1
ROWS = 8


def batch(number):
    return np.random.default_rng(number).normal(loc=2.0, size=(ROWS, 3)).astype("float32")


def own_rows(data):
    """This replica's part of a batch."""
    context = tf.distribute.get_replica_context()
    return data[context.replica_id_in_sync_group :: context.num_replicas_in_sync]


def begin(setup):
    """A strategy, and a model and its optimizer in the scope."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(RATE), loss="mse")
        model.optimizer.build(model.trainable_variables)
    return strategy, model


def update(model, rows):
    """One step; what all replicas add up to is the mean error of the whole batch."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(rows) - 1.0)) / ROWS
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))


# %%
@experiment
def broken(setup):
    strategy, model = begin(setup)
    kept = {}

    def look(data):
        kept["mean"] = tf.reduce_mean(own_rows(data), axis=0)  # guilty: a symbolic tensor

    def learn(data):
        update(model, own_rows(data) - kept["mean"])

    @tf.function
    def look_step(data):
        strategy.run(look, args=(data,))

    @tf.function
    def train_step(data):
        strategy.run(learn, args=(data,))

    look_step(tf.constant(batch(0)))
    train_step(tf.constant(batch(0)))


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `tf.function` runs your Python function once for each new input signature, with symbolic tensors, and records a graph. This is a
# trace; later calls run the graph. In the trace `tf.reduce_mean` returns a symbolic tensor, which stands for a result inside this
# graph and has no value. The dictionary keeps this tensor.
#
# When the second function is traced, it has a graph of its own. A tensor of another graph cannot be used in it.
#
# A caller gets the values of what a function *returns*. A `tf.Variable` keeps a value from one call to the next.
#
# The picture keeps a mean in four ways and uses it in three places. In the last one a third function calls the other two, and the
# error is called `InaccessibleTensorError`. See [the guide to
# `tf.function`](https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values).


# %%
def in_list():
    """How to keep the mean of a batch, and how to find it again."""
    kept = []
    return tf.function(lambda data: kept.append(tf.reduce_mean(data))), lambda: kept[0]


class Look(tf.keras.layers.Layer):
    def call(self, inputs):
        self.mean = tf.reduce_mean(inputs)
        return inputs


def in_attribute():
    layer = Look()
    return tf.function(lambda data: layer(data)), lambda: layer.mean


def returned():
    kept, mean = [], tf.function(lambda data: tf.reduce_mean(data))
    return lambda data: kept.append(mean(data)), lambda: kept[0]


def in_variable():
    kept = tf.Variable(0.0)
    return tf.function(lambda data: kept.assign(tf.reduce_mean(data))), lambda: kept


def eager_code(keep, find, data):
    keep(data)
    return find() + 0.0


def another_function(keep, find, data):
    keep(data)
    return tf.function(lambda: find() + 0.0)()


def third_function(keep, find, data):
    return tf.function(lambda data: another_function(keep, find, data))(data)


def error_of(way, place):
    """The name of the error that comes instead of the right mean; empty if none does."""
    try:
        mean = float(place(*way(), tf.constant(batch(0))))
    except (TypeError, ValueError) as error:  # an InaccessibleTensorError is a ValueError
        return type(error).__name__
    return "" if np.isclose(mean, batch(0).mean()) else "wrong"


WAYS = {
    "in a list": in_list,
    "in a layer's attribute": in_attribute,
    "as a result": returned,
    "in a tf.Variable": in_variable,
}
PLACES = [eager_code, another_function, third_function]
FOUND = {name: [not error_of(way, place) for place in PLACES] for name, way in WAYS.items()}
COLUMNS = ["eager code", "another function", "both in a third"]
figures.grid(FOUND, COLUMNS, "yes", "no", "Can the kept mean be used there?")

# %% [markdown]
# ## The fix
#
# Return the tensor, and make it an argument of the second function. Before:
#
# ```python
# import tensorflow as tf
#
# kept, data = {}, tf.constant([1.0, 3.0])
#
# @tf.function
# def look(data):
#     kept["mean"] = tf.reduce_mean(data)
#
# @tf.function
# def learn(data):
#     return data - kept["mean"]
#
# look(data)
# learn(data)  # TypeError: is out of scope and cannot be used here. Use return values
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# @tf.function
# def look(data):
#     return tf.reduce_mean(data)
#
# @tf.function
# def learn(data, mean):
#     return data - mean
#
# data = tf.constant([1.0, 3.0])
# print(learn(data, look(data)).numpy())  # [-1.  1.]
# ```
#
# If the value must last, assign it to a `tf.Variable`, as the experiment does. Under a strategy, make the variable in the scope;
# `aggregation` says how the values of several replicas become one.


# %%
def on_paper(weights, rows):
    """The weights after one update from these rows, worked out by hand."""
    kernel, bias = weights
    slope = 2 * (rows @ kernel + bias - 1.0) / ROWS
    return [kernel - RATE * rows.T @ slope, bias - RATE * slope.sum(axis=0)]


@experiment
def fixed(setup):
    strategy, model = begin(setup)
    want = on_paper(model.get_weights(), batch(0) - batch(0).mean(axis=0))
    with strategy.scope():
        how = tf.VariableAggregation.MEAN
        kept = {"mean": tf.Variable(tf.zeros(3), trainable=False, aggregation=how)}

    def look(data):
        kept["mean"].assign(tf.reduce_mean(own_rows(data), axis=0))  # repair

    def learn(data):
        update(model, own_rows(data) - kept["mean"])

    @tf.function
    def look_step(data):
        strategy.run(look, args=(data,))

    @tf.function
    def train_step(data):
        strategy.run(learn, args=(data,))

    look_step(tf.constant(batch(0)))
    train_step(tf.constant(batch(0)))
    return Proof(
        "the update is that of the centred batch, worked out by hand",
        model.get_weights(),
        want,
        tolerance=1e-5,
    )


session.proves(fixed)

# %%
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch to `mirrored` with two devices: the tensor in the message is called `replica_1/Mean`. Both replicas write to one
# dictionary during the trace, and the second one overwrites the first.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" (000):
#
# > Improper handling of `@tf.function` decorators can also contribute to this problem by creating unintended closures around
# > variables, leading to access conflicts across replicas.
#
# A closure around variables works: nearly every step has one, and two replicas share it here. A closure around a tensor of
# another graph fails, and it needs no replica to fail.


# %% tags=["claims"]
def trains_variables_of_a_closure(setup):
    """Is the update right if the step finds the model in a closure, and the replicas share it?"""
    strategy, model = begin(setup)
    want = on_paper(model.get_weights(), batch(0))

    @tf.function
    def train_step(data):
        strategy.run(lambda: update(model, own_rows(data)))

    train_step(tf.constant(batch(0)))
    pairs = zip(model.get_weights(), want)
    return all(np.allclose(got, each, atol=1e-5) for got, each in pairs)


session.judges(
    {
        "000-C8": [
            error_of(in_list, another_function) == "TypeError",
            error_of(in_attribute, third_function) == "InaccessibleTensorError",
            not trains_variables_of_a_closure(two),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# The script should subtract the first batch's mean from every batch. It keeps the mean in a list. There is one function here,
# and one trace, so nothing is raised. Instead, each batch loses its own mean. Make it subtract the first batch's mean.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    first = []

    @tf.function
    def centred(data):
        if not first:
            first.append(tf.reduce_mean(data))
        return data - first[0]

    got = [centred(tf.constant(batch(number))) for number in range(3)]
    want = [batch(number) - batch(0).mean() for number in range(3)]
    return Proof("the first batch's mean is subtracted from every batch", got, want, tolerance=1e-5)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    first = tf.reduce_mean(batch(0))

    @tf.function
    def centred(data, mean):
        return data - mean

    got = [centred(tf.constant(batch(number)), first) for number in range(3)]
    want = [batch(number) - batch(0).mean() for number in range(3)]
    return Proof("the first batch's mean is subtracted from every batch", got, want, tolerance=1e-5)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): Python that runs once per trace, where every step was meant.
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): reading a value during the trace.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): where to make a variable that has to last.
