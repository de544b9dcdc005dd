# %% [markdown]
# # FM15. Updating weights inside a condition fails on a replica
#
# Gradient accumulation adds up the gradients of several small batches and updates the weights after the last one. The step
# trains on one device. Under a strategy, `fit` or `strategy.run` raises before the first step.
#
# ```text
# RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen if the
# function `fn` passed to `strategy.run()` contains a nested `@tf.function`, and the nested `@tf.function`
# contains a synchronization point, such as aggregating gradients (e.g, optimizer.apply_gradients), or if the
# function `fn` uses a control flow statement which contains a synchronization point in the body. …
# ```
#
# *Loud under every strategy with replicas; one replica is enough. Sums in the wrong kind of variable are silent. The document is
# an answer on accumulating gradients (002).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm15",
    slug="accumulation_under_strategy",
    title="Updating weights inside a condition fails on a replica",
    sees="`merge_call` called while defining a new graph, from an update under `tf.cond`",
    fix="ask in Python, outside of the replicas: `if last: strategy.run(update)`",
    document="002",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"To use this dataset, you need to pass this dataset to ClusterCoordinator",
            strategies=("parameter_server",),
            keras=(2,),
        ),
        Symptom(
            "RuntimeError",
            r"`merge_call` called while defining a new graph or a tf\.function",
            strategies=("mirrored", "central_storage", "multi_worker", "parameter_server"),
        ),
    ),
    claims=(
        Claim("002-C3", "summing the gradients of ten batches equals one larger batch", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm15", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# `fit` calls `train_step` for every small batch, and every fourth call ends with an update. The step counts its calls, so it
# asks itself whether this is the last one. You believe that a replica takes whatever `tf.function` takes. Here
# `train_on_batch` does the same, one step at a time.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

RATE = 0.1
BATCHES = 4
ROWS = 8


def batch(number):
    return np.random.default_rng(number).normal(size=(ROWS, 3)).astype("float32")


def all_batches():
    return np.concatenate([batch(number) for number in range(BATCHES)])


class Accumulating(tf.keras.Sequential):
    """A linear model with a variable for the sum of each gradient; the wanted result is one for every row."""

    def sum_up(self, rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(self(rows) - 1.0)) / (BATCHES * ROWS)
        gradients = tape.gradient(loss, self.trainable_variables)
        for total, gradient in zip(self.totals, gradients):
            total.assign_add(gradient)
        return loss

    def update(self):
        sums = [tf.identity(total) for total in self.totals]
        self.optimizer.apply_gradients(zip(sums, self.trainable_variables))
        for total in self.totals:
            total.assign(tf.zeros(total.shape))


def skip():
    return None


def begin(strategy, kind=Accumulating, variable=("ON_READ", "MEAN")):
    """A compiled model in the scope of a strategy, with its sums in variables of this kind."""
    synchronization = tf.VariableSynchronization[variable[0]]
    aggregation = tf.VariableAggregation[variable[1]]
    with strategy.scope():
        model = kind([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(RATE), tf.keras.losses.MeanSquaredError())
        model.optimizer.build(model.trainable_variables)
        model.totals = [
            tf.Variable(
                tf.zeros(weight.shape),
                trainable=False,
                synchronization=synchronization,
                aggregation=aggregation,
            )
            for weight in model.trainable_variables
        ]
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        model.calls = tf.Variable(0, trainable=False, dtype=tf.int64, aggregation=first)
    return model


def weights_of(model):
    return [tf.convert_to_tensor(each).numpy() for each in model.trainable_variables]


def on_paper(weights, rows):
    """The weights after one update from these rows, worked out by hand."""
    kernel, bias = weights
    slope = 2 * (rows @ kernel + bias - 1.0) / (BATCHES * ROWS)
    return [kernel - RATE * rows.T @ slope, bias - RATE * slope.sum(axis=0)]


def same_as_large_batch(model, before):
    return Proof(
        "the accumulated update is that of one large batch",
        weights_of(model),
        on_paper(before, all_batches()),
        tolerance=1e-5,
    )


# %%
@experiment
def broken(setup):
    class InTheStep(Accumulating):
        def train_step(self, data):
            loss = self.sum_up(data[0])
            self.calls.assign_add(1)
            last = tf.equal(self.calls % BATCHES, 0)
            tf.cond(last, self.update, skip)  # guilty: a condition in the replica
            return {"loss": loss}

    model = begin(build_strategy(setup), InTheStep)
    before = weights_of(model)
    for number in range(BATCHES):
        model.train_on_batch(batch(number), np.ones((ROWS, 1)))
    return same_as_large_batch(model, before)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# An update needs all replicas: their gradients are added up first. `apply_gradients` therefore calls `merge_call`, where each
# replica waits for the others. A branch of `tf.cond` is a graph of its own. TensorFlow cannot leave such an inner graph for the
# other replicas, so it refuses to trace it, even for one replica. Without a strategy there is no `merge_call`.
#
# Your step has no condition? A `tf.function` that it calls is an inner graph too, and Keras 3 writes conditions itself for
# `gradient_accumulation_steps`: see [fm40](fm40_merge_call_in_nested_graph.ipynb).
#
# The picture shows where an update may stand. See
# [`merge_call`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext#merge_call).


# %%
def python_if(strategy, model):
    tf.function(strategy.run)(model.update)


def cond_around_run(strategy, model):
    @tf.function
    def train_step(last):
        tf.cond(last, lambda: strategy.run(model.update), skip)

    train_step(tf.constant(True))


def cond_in_the_step(strategy, model):
    def step(last):
        tf.cond(last, model.update, skip)

    @tf.function
    def train_step(last):
        strategy.run(step, args=(last,))

    train_step(tf.constant(True))


class InParts(Accumulating):
    """Is given the large batch, and adds up the gradients of its parts: there is nothing to ask."""

    def train_step(self, data):
        losses = [self.sum_up(part) for part in tf.split(data[0], BATCHES)]
        self.update()
        return {"loss": tf.add_n(losses)}


def fit_large_batch(strategy, model):
    rows = all_batches()
    model.fit(rows, np.ones((len(rows), 1)), batch_size=len(rows), verbose=0)


def runs(setup, way, kind=Accumulating):
    strategy = build_strategy(setup)
    try:
        way(strategy, begin(strategy, kind))
    except RuntimeError as error:
        return "merge_call" not in str(error)
    return True


WAYS = {
    "Python if around run": (python_if,),
    "tf.cond around run": (cond_around_run,),
    "tf.cond in the step": (cond_in_the_step,),
    "fit, parts in train_step": (fit_large_batch, InParts),
}
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
FOUND = {row: [runs(each, *way) for each in (alone, two)] for row, way in WAYS.items()}
figures.grid(FOUND, ["no strategy", "mirrored x2"], "runs", "raises", "Does the update run?")

# %% [markdown]
# ## The fix
#
# Ask in Python, around two calls of `strategy.run`: one adds up, the other updates. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, total, optimizer = tf.Variable(1.0), tf.Variable(0.0), tf.keras.optimizers.SGD(0.1)
#     optimizer.build([weight])
# def step(last):
#     total.assign_add(0.25)
#     update = lambda: optimizer.apply_gradients([(tf.identity(total), weight)])
#     tf.cond(last, update, lambda: None)
# tf.function(strategy.run)(step, args=(tf.constant(True),))  # RuntimeError: `merge_call` called while defining a new graph
# ```
#
# After, with a gradient of 0.25 on each of two replicas, and an update after every fourth:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     weight, total, optimizer = tf.Variable(1.0), tf.Variable(0.0), tf.keras.optimizers.SGD(0.1)
# for number in range(1, 9):
#     strategy.run(lambda: total.assign_add(0.25))
#     if number % 4 == 0:
#         strategy.run(lambda: optimizer.apply_gradients([(tf.identity(total), weight)]))
#         total.assign(0.0)
# print(round(float(weight.numpy()), 3))  # 0.6
# ```
#
# If the condition must stay in the graph, put `tf.cond` around `strategy.run`. To stay in `fit`, give it the large batch and add
# up the gradients of its parts in `train_step`.
#
# The proof compares with one large batch. Each loss is divided by the rows of the whole large batch.


# %%
def own_rows(rows):
    """This replica's part of a batch."""
    context = tf.distribute.get_replica_context()
    return rows[context.replica_id_in_sync_group :: context.num_replicas_in_sync]


def accumulated(strategy, model):
    """The two calls of `strategy.run`, each traced once."""

    def sum_up(rows):
        model.sum_up(own_rows(rows))

    @tf.function
    def add(rows):
        strategy.run(sum_up, args=(rows,))

    @tf.function
    def update():
        strategy.run(model.update)

    return add, update


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    before = weights_of(model)
    add, update = accumulated(strategy, model)
    for number in range(1, BATCHES + 1):
        add(tf.constant(batch(number - 1)))
        if number % BATCHES == 0:  # repair: Python asks, outside of the replicas
            update()
    return same_as_large_batch(model, before)


session.proves(fixed)

SETUPS = [alone, two, two.but(strategy="central_storage"), two.but(strategy="multi_worker")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ### Sums that are wrong without an error
#
# Each replica adds to its own sum, and a variable made in the scope belongs to all replicas. Its `synchronization` and
# `aggregation` say what becomes of the additions. A plain variable is right under `MirroredStrategy`, and central storage
# refuses it. Some pairs double the update and raise nothing. `ON_READ` with `MEAN` is right in every row of the table above.


# %%
def times(setup, variable):
    """The update as a multiple of that of one large batch."""
    strategy = build_strategy(setup)
    model = begin(strategy, variable=variable)
    before = weights_of(model)
    try:
        add, update = accumulated(strategy, model)
        for number in range(BATCHES):
            add(tf.constant(batch(number)))
        update()
    except ValueError:
        return "ValueError"
    want = on_paper(before, all_batches())[0]
    moved = np.sum(weights_of(model)[0] - before[0]) / np.sum(want - before[0])
    return f"{moved:.2f}"


VARIABLES = [("AUTO", "NONE"), ("ON_WRITE", "SUM"), ("ON_WRITE", "MEAN")]
VARIABLES += [("ON_READ", "SUM"), ("ON_READ", "MEAN")]
PLACES = {"mirrored x2": two, "central\nstorage x2": two.but(strategy="central_storage")}
TIMES = {
    ", ".join(variable): [times(each, variable) for each in PLACES.values()]
    for variable in VARIABLES
}
WRONG = {word for row in TIMES.values() for word in row} - {"1.00"}
figures.words(TIMES, list(PLACES), WRONG, "Update, in updates of one large batch")

# %% [markdown]
# ## Switch and run
#
# Set the strategy `default` or `one_device`: the condition may stay in the step, which is how it got into the script. With
# `multi_worker` two processes add up rows of their own.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?" (002) sums the mean
# gradients of ten batches and updates once:
#
# > Gradient accumulation is a technique used to effectively increase the batch size for training deep learning models …
#
# > The gradients are added directly to the corresponding elements in `accumulated_gradients` ensuring consistency.
#
# The run finds an update ten times that of one larger batch: a mean of means needs a division by ten.


# %% tags=["claims"]
def update_of(batches):
    """The change of the weights by the summed gradients of the mean errors of some batches."""
    model = begin(build_strategy(alone))
    variables = model.trainable_variables
    for variable in variables:
        variable.assign(tf.fill(variable.shape, 0.5))
    totals = [tf.zeros(variable.shape) for variable in variables]
    for rows in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(rows) - 1.0))
        totals = [a + b for a, b in zip(totals, tape.gradient(loss, variables))]
    model.optimizer.apply_gradients(zip(totals, variables))
    return np.concatenate([weight.ravel() - 0.5 for weight in weights_of(model)])


ten = [batch(number) for number in range(10)]
summed, large = update_of(ten), update_of([np.concatenate(ten)])
print(f"the update of ten batches is {np.mean(summed / large):.2f} times that of one larger batch")
session.judges({"002-C3": [np.allclose(summed, large, atol=1e-5)]})

# %% [markdown]
# ## Exercise
#
# Every second batch is kept for measuring: it must not change the weights. The step knows the number of its batch and decides.
# Change the program so that it trains under a strategy.


# %% tags=["exercise"]
def after_every_second(weights):
    for number in range(0, BATCHES, 2):
        weights = on_paper(weights, batch(number))
    return weights


@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want = after_every_second(weights_of(model))

    def learn(rows):
        model.sum_up(own_rows(rows))
        model.update()

    def step(rows, even):
        tf.cond(even, lambda: learn(rows), skip)

    @tf.function
    def train_step(rows, even):
        strategy.run(step, args=(rows, even))

    for number in range(BATCHES):
        train_step(tf.constant(batch(number)), tf.constant(number % 2 == 0))
    return Proof("every second batch has changed the weights", weights_of(model), want, 1e-5)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    model = begin(strategy)
    want = after_every_second(weights_of(model))

    def learn(rows):
        model.sum_up(own_rows(rows))
        model.update()

    @tf.function
    def train_step(rows):
        strategy.run(learn, args=(rows,))

    for number in range(0, BATCHES, 2):
        train_step(tf.constant(batch(number)))
    return Proof("every second batch has changed the weights", weights_of(model), want, 1e-5)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm40 merge_call_in_nested_graph](fm40_merge_call_in_nested_graph.ipynb): the same message without a condition of your own.
# - [fm13 gradients_inconsistent](fm13_gradients_inconsistent.ipynb): what to add for a layer that a batch did not use.
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): accumulators that are made too early.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): other calls that a replica cannot make.
# - [fm37 loss_scaled_per_replica](fm37_loss_scaled_per_replica.ipynb): the same factor, from a mean on each replica.
