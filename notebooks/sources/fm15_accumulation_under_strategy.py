# %% [markdown]
# # FM15. Updating weights inside a condition fails on a replica
#
# Gradient accumulation adds up the gradients of several small batches and updates the weights after the last one. With the
# condition inside the step that works on one device, and dies in a `merge_call` as soon as the step runs under a strategy.
#
# ```text
# RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen if the function `fn` passed to `strategy.run()` contains a nested `@tf.function`, and the nested `@tf.function` contains a synchronization point, such as aggregating gradients (e.g, optimizer.apply_gradients), or if the function `fn` uses a control flow statement which contains a synchronization point in the body. Such behaviors are not yet supported. Instead, please avoid nested `tf.function`s or control flow statements that may potentially cross a synchronization boundary, for example, wrap the `fn` passed to `strategy.run` or the entire `strategy.run` inside a `tf.function` or move the control flow out of `fn`. If you are subclassing a `tf.keras.Model`, please avoid decorating overridden methods `test_step` and `train_step` in `tf.function`.
# ```
#
# *Loud; sums that are kept in the wrong kind of variable are silent. The strategy matters. From document 002.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm15",
    slug="accumulation_under_strategy",
    title="Updating weights inside a condition fails on a replica",
    sees="`merge_call` called while defining a new graph, from `apply_gradients` under `tf.cond` or `if`",
    fix="ask outside the replica: `tf.cond(last, lambda: strategy.run(update), skip)`",
    document="002",
    switches=("strategy",),
    symptoms=(
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
import helpers

clinic = helpers.open("fm15", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Each small batch is one call of the training step, and every fourth call ends with an update. The step knows which call it
# is, so the question stands in the step. You believe that what `tf.function` accepts a replica accepts too.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures

RATE = 0.1
BATCHES = 4
ROWS = 8


def batch(number):
    return np.random.default_rng(number).normal(size=(ROWS, 3)).astype("float32")


def make_model(**options):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(RATE, **options)
    model.compile(optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def gradients_of(model, data):
    """Of the part that these rows have in the mean error of one large batch, all small ones together."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(data) - 1.0)) / (BATCHES * ROWS)
    return tape.gradient(loss, model.trainable_variables)


def on_paper(weights, rows):
    """The weights after one update from these rows, worked out by hand."""
    kernel, bias = weights
    slope = 2 * (rows @ kernel + bias - 1.0) / (BATCHES * ROWS)
    return [kernel - RATE * rows.T @ slope, bias - RATE * slope.sum(axis=0)]


def same_as_large_batch(model, before):
    want = on_paper(before, np.concatenate([batch(number) for number in range(BATCHES)]))
    return Proof(
        "the accumulated update is that of one large batch",
        model.get_weights(),
        want,
        tolerance=1e-5,
    )


# %%
def own_rows(data):
    """This replica's part of a batch."""
    context = tf.distribute.get_replica_context()
    return data[context.replica_id_in_sync_group :: context.num_replicas_in_sync]


def accumulator(shape, synchronization, aggregation):
    """A variable for sums of gradients."""
    when = tf.VariableSynchronization[synchronization]
    how = tf.VariableAggregation[aggregation]
    return tf.Variable(tf.zeros(shape), trainable=False, synchronization=when, aggregation=how)


def begin(setup, kind=("ON_READ", "MEAN")):
    """A model and sums in the scope of a strategy, and two parts of a step: one adds, one updates the weights."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        totals = [accumulator(weight.shape, *kind) for weight in model.trainable_variables]

    def add(data):
        for total, gradient in zip(totals, gradients_of(model, own_rows(data))):
            total.assign_add(gradient)

    def update():
        # A bare read names no device, and Keras 3 refuses that if a process has one replica only.
        sums = [tf.identity(total) for total in totals]
        model.optimizer.apply_gradients(zip(sums, model.trainable_variables))
        for total in totals:
            total.assign(tf.zeros(total.shape))

    return strategy, model, add, update


def run(train_step):
    """Gives a step all batches, one by one, and whether it is the last one."""
    for number in range(BATCHES):
        train_step(tf.constant(batch(number)), tf.constant(number == BATCHES - 1))


def skip():
    return None


@experiment
def broken(setup):
    strategy, model, add, update = begin(setup)
    before = model.get_weights()

    @tf.function
    def train_step(data, last):
        strategy.run(add, args=(data,))
        strategy.run(lambda: tf.cond(last, update, skip))  # guilty: a condition in the replica

    run(train_step)
    return same_as_large_batch(model, before)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# An update needs all replicas: their gradients are added first. So `apply_gradients` leaves the replica through `merge_call`,
# where each replica waits for the others. A branch of `tf.cond` is a graph of its own, and two replicas may take two branches;
# then one would wait for ever. TensorFlow refuses to trace such a thing, even for a single replica. Without a strategy there
# is nobody to wait for.
#
# Once that is mended, a silent trap is left. A sum belongs to one replica, and a variable made in the scope belongs to all:
# its `synchronization` and `aggregation` say how what one replica adds gets into it. Some pairs multiply the update.
#
# The picture compares ways to accumulate with one large batch. See
# [`tf.VariableAggregation`](https://www.tensorflow.org/api_docs/python/tf/VariableAggregation).

# %%
alone = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
PLACES = [alone, two, two.but(strategy="central_storage")]


def outside(setup, synchronization, aggregation):
    """The condition is Python's and outside the replica; the sums are in variables of this kind."""
    strategy, model, add, update = begin(setup, (synchronization, aggregation))
    before = model.get_weights()

    def train_step(data, last):
        strategy.run(add, args=(data,))
        if last:
            strategy.run(update)

    run(train_step)
    return same_as_large_batch(model, before)


def by_option(setup, batches=BATCHES):
    """Keras 3 can accumulate by itself: its own step, which `fit` takes too."""
    with build_strategy(setup).scope():
        model = make_model(gradient_accumulation_steps=BATCHES)
    before = model.get_weights()
    for number in range(batches):
        model.train_on_batch(batch(number), np.ones((ROWS, 1), "float32"))
    return same_as_large_batch(model, before)


def is_right(way, *arguments):
    try:
        return way(*arguments).holds
    except (
        RuntimeError,
        ValueError,
    ):  # merge_call; central storage wants to be told an aggregation
        return False


KINDS = [("AUTO", "NONE"), ("ON_WRITE", "SUM"), ("ON_WRITE", "MEAN")]
KINDS += [("ON_READ", "SUM"), ("ON_READ", "MEAN")]
RIGHT = {"condition in the replica": [is_right(broken, each) for each in PLACES]}
for kind in KINDS:
    RIGHT[f"outside; {', '.join(kind)}"] = [is_right(outside, each, *kind) for each in PLACES]
if clinic.setup.keras == 3:
    RIGHT["Keras's own option"] = [is_right(by_option, each) for each in PLACES]
COLUMNS = ["no strategy", "mirrored", "central storage"]
figures.grid(RIGHT, COLUMNS, "yes", "no", "Is the update that of one large batch?")

# %% [markdown]
# ## The fix
#
# Ask outside: the condition stays in the graph, and in its branch all replicas update together. Keep the sums in variables
# made in the scope with `ON_READ` and `MEAN`, and divide each loss by the rows of the whole large batch, not of its own.


# %%
@experiment
def fixed(setup):
    strategy, model, add, update = begin(setup)
    before = model.get_weights()

    @tf.function
    def train_step(data, last):
        strategy.run(add, args=(data,))
        tf.cond(last, lambda: strategy.run(update), skip)  # repair

    run(train_step)
    return same_as_large_batch(model, before)


clinic.proves(fixed)

# %%
SETUPS = [*PLACES, two.but(devices=1), two.but(strategy="multi_worker")]
SETUPS += [two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Set the strategy `default` or `one_device`, and the condition may stay where it was: that is how it got into the script. The
# strategy `multi_worker` starts two processes, each with its own rows, and their update is that of one large batch as well.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002 adds up the mean gradients of ten batches and calls that one larger batch. It is ten times the update of one,
# unless somebody divides. `gradient_accumulation_steps` of Keras 3 does divide, and it asks its question in the replica, with
# the error that you have seen. Without a strategy it works, but for batches that are left over: they wait for an update that
# never comes.


# %% tags=["claims"]
def update_of(batches):
    """The change of the weights by the summed gradients of the mean errors of some batches."""
    model = make_model()
    before = [np.full_like(weight, 0.5) for weight in model.get_weights()]
    model.set_weights(before)
    totals = [tf.zeros(weight.shape) for weight in before]
    for data in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        totals = [total + gradient for total, gradient in zip(totals, gradients)]
    model.optimizer.apply_gradients(zip(totals, model.trainable_variables))
    return np.concatenate([(a - b).ravel() for a, b in zip(model.get_weights(), before)])


def left_over_batches_count():
    """Do two batches more than Keras's option asks for change the weights?"""
    return clinic.setup.keras == 3 and not by_option(alone, BATCHES + 2).holds


ten = [batch(number) for number in range(10)]
summed, large = update_of(ten), update_of([np.concatenate(ten)])
ten_times = np.allclose(summed, 10 * large, atol=1e-5)
clinic.judges(
    {
        "002-C3": [
            np.allclose(summed, large, atol=1e-5),
            not ten_times,
            left_over_batches_count(),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# A row of this batch is broken. A replica that meets it shall leave out its part of the update, and the others shall not. As
# it is written nobody gets that far. Each replica has an answer of its own here, so the question cannot move out: mend it
# without a condition.


# %% tags=["exercise"]
def damaged():
    data = batch(0)
    data[0] = np.nan
    return data


def without_damage(weights, replicas):
    """The weights after an update from the parts of all replicas that met no NaN."""
    parts = [damaged()[replica::replicas] for replica in range(replicas)]
    sound = [part for part in parts if np.isfinite(part).all()]
    return on_paper(weights, np.concatenate([batch(0)[:0], *sound]))


@experiment
def attempt(setup):
    strategy, model, _, _ = begin(setup)
    want = without_damage(model.get_weights(), strategy.num_replicas_in_sync)

    def step(data):
        gradients = gradients_of(model, own_rows(data))
        if tf.reduce_all(tf.math.is_finite(gradients[0])):
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    tf.function(lambda data: strategy.run(step, args=(data,)))(tf.constant(damaged()))
    return Proof("only replicas without NaN have updated the weights", model.get_weights(), want)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy, model, _, _ = begin(setup)
    want = without_damage(model.get_weights(), strategy.num_replicas_in_sync)

    def step(data):
        gradients = gradients_of(model, own_rows(data))
        finite = tf.reduce_all(tf.math.is_finite(gradients[0]))
        gradients = [tf.where(finite, each, 0.0) for each in gradients]
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    tf.function(lambda data: strategy.run(step, args=(data,)))(tf.constant(damaged()))
    return Proof("only replicas without NaN have updated the weights", model.get_weights(), want)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm13 gradients_inconsistent](fm13_gradients_inconsistent.ipynb): what to add for a layer that a batch did not use.
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): accumulators that are made too early.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): other calls that a replica cannot make.
