# %% [markdown]
# # FM19. `strategy.reduce("MEAN", ...)` of the replicas' means: wrong, or `nan`, for a partial last batch
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `mean error: 24.58` | `strategy.reduce("MEAN", ...)` on two devices; 23.0 on one, `nan` on eight | 2, 3 |
# | `InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape. Input 0: [7] != input 1: [6]` | `reduce(..., axis=None)` of parts of several sizes; FM71 has this message, too | 2, 3 |
# | `ValueError: Dimension 0 in both shapes must be equal, but are 7 and 6` | the same `reduce` in a `tf.function` | 2, 3 |
#
# Each replica returns the mean of its own examples, and the strategy averages these means. If the replicas have different
# numbers of examples, their means must be weighted.
#
# *Wrong result without an error, on Keras 2 and 3, if several replicas share a batch unevenly.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm19",
    slug="partial_last_batch",
    title='`strategy.reduce("MEAN", ...)` of the replicas\' means: wrong, or `nan`, for a partial last batch',
    sees="an evaluation on several devices gives a slightly different mean, or `nan`",
    fix="update a `tf.keras.metrics.Mean` with one value per example",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'mean error: (24\.58|33\.88|nan)'",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="mean error: 23.0",
    exercise_prints="above 4: 9",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so no batch is divided"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm19", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A test set of 13 examples, evaluated in batches of 16. On two devices, one replica gets seven examples and the other six.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create a `tf.keras.metrics.Mean` in the scope, and give it one value for each example. It adds up values and counts over all
# replicas and over all batches.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For the mean of one batch, return the values and give `reduce` the axis of the examples:
#
# ```python
# def step(batch):
#     return tf.square(tf.cast(batch, tf.float32) - 4.0)
#
#
# strategy.reduce("MEAN", strategy.run(step, args=(batch,)), axis=0)
# ```
#
# `fit` and `evaluate` of Keras 3 raise the message about `AddN` for an uneven *first* batch: see
# [FM71](fm71_first_batch_of_fit.ipynb). A later one is accepted, with too small a step if a replica gets no example.
#
# In a training step, divide the sum of the losses by the number of examples that the batch really has:
#
# ```python
# count = tf.cast(tf.shape(labels)[0], errors.dtype)
# loss = tf.reduce_sum(errors) / tf.distribute.get_replica_context().all_reduce("SUM", count)
# ```
#
# Or keep `global_batch_size` on purpose: then each example weighs the same in the epoch, and a small last batch makes a small
# step.
#
# ## Why
#
# Here the mean of seven examples and the mean of six count one half each. So an example of the first replica weighs 1/14 and one
# of the second 1/12, and each should weigh 1/13. A replica can also get no example at all. The mean of an empty tensor is `nan`,
# and one `nan` makes the mean of all means `nan`.
#
# Each replica gets the examples of the batch divided by the number of replicas, rounded up, until none is left. The result is
# right only if this gives all replicas the same number.
#
# The first picture tries three sizes of the last batch. The second shows what the replicas held: the mean of two means differs
# from that of one device. See [the guide on partial
# batches](https://www.tensorflow.org/tutorials/distribute/input#partial_batches).

# %% tags=["figure"]
# The program above with 16, 14 and 13 examples; its result is right if one device prints the same.
from strategy_clinic import figures

LINE = "data = tf.data.Dataset.range(1, 14).batch(16)"
SIZES = {
    f"{count} examples": f"data = tf.data.Dataset.range(1, {count + 1}).batch(16)"
    for count in (16, 14, 13)
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4, 8)]
printed = session.prints(session.variants("broken", LINE, SIZES), PLACES)


def word(text, right):
    return "right" if text == right else "nan" if text.endswith("nan") else "wrong"


FOUND = {size: [word(each, texts[0]) for each in texts[1:]] for size, texts in printed.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES[1:]]
figures.words(FOUND, COLUMNS, ("wrong", "nan"), "Is the mean of the replicas' means right?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With two and four devices the mean is off. With eight, one replica has no example, and the mean is `nan`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and eight devices, with the other version of Keras, and with two processes:

# %% tags=["table"]
other = two.but(keras=session.setup.other_keras)
session.table([PLACES[0], two, PLACES[3], other, two.but(strategy="multi_worker")])

# %% [markdown]
# ## Exercise
#
# This loop counts the numbers above 4 in 1 to 13. On the last batch it raised `Dimension 0 in both shapes must be equal`, until
# somebody added `drop_remainder=True`. Make it count all of them. It should print `9`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests which first batches Keras accepts.
# Which of the three methods work with so many examples in batches of this size.
METHODS = """
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x = tf.ones(({}, 1))
for method, data in dict(fit=[x, x], evaluate=[x, x], predict=[x]).items():
    try:
        getattr(model, method)(*data, batch_size={}, verbose=0)
        print(method, end=" ")
    except tf.errors.InvalidArgumentError:
        pass
"""
HEAD = session.texts["broken"].partition("data = ")[0]
UNEVEN = {2: ["13, 16"], 4: ["100, 10"]}  # by devices: examples, batch size
EVEN = {2: ["29, 16", "13, 12"], 4: ["100, 12"]}  # as to the first batch
for cases, works in ((UNEVEN, "predict"), (EVEN, "fit evaluate predict")):
    for count, sizes in cases.items():
        texts = {each: HEAD + METHODS.format(*each.split(", ")) for each in sizes}
        names = ("mirrored", "central_storage")
        setups = [two.but(devices=count, strategy=name) for name in names]
        everything = "fit evaluate predict"
        wanted = [everything if session.setup.keras == 2 else works, everything]
        assert all(words == wanted for words in session.prints(texts, setups).values())

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the same mistake in a training loss.
# - [FM44](fm44_fit_reports_another_number.ipynb): why `fit` reports a different number.
# - [FM39](fm39_per_replica_on_host.ipynb): how to use what `strategy.run` returns.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): where `strategy.reduce` may be called.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
