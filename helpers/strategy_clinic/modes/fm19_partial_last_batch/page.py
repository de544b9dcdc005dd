# %% [markdown]
# # FM19. `strategy.reduce("MEAN", ...)` of the replicas' means: wrong, or `nan`, for a partial last batch
#
# ```text
# mean error: 23.0     on one device
# mean error: 24.58    on two
# mean error: 33.88    on four
# mean error: nan      on eight
# InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape. Input 0: [7,1] != input 1: [6,1]
#                      reduce(..., axis=None) of parts of several sizes. In fit and evaluate of Keras 3: see FM71
# ValueError: Dimension 0 in both shapes must be equal, but are 7 and 6
#                      the same reduce in a tf.function
# ```
#
# Each replica returns the mean of its own examples, and the strategy averages these means. If the replicas have different
# numbers of examples, their means must be weighted.
#
# *Wrong result without an error, on Keras 2 and 3, if several replicas share a batch unevenly.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
    claims=(
        Claim(
            "003-C16",
            "`axis=None` reduces over the replicas only, `axis=0` over the whole batch as well",
            "true",
        ),
        Claim("003-C17", "uneven parts are a shape mismatch unless an axis is given", "true"),
        Claim(
            "003-C18",
            "MEAN with `axis=0` divides by the true count; a mean of means weighs 1/8 and 1/4",
            "true",
        ),
        Claim("003-C39", "`reduce` returns its result on the current device", "true"),
        Claim(
            "003-C40",
            "the operation may be a string, and without replicas the value a tensor",
            "true",
        ),
        Claim("003-C41", "its two examples of `reduce` give what they print", "true"),
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
# The picture tries three sizes of the last batch. See [the guide on partial
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

# %% [markdown]
# ## What documents say
#
# The [reference of `TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy) warns of this failure,
# and is right. Its example divides six examples into four and two. `experimental_distribute_dataset` would give three to each
# replica, so that batch happens to be right. Its printed results and devices are right, too.

# %% tags=["claims"]
# Tests which first batches Keras accepts, and what the reference says about the axis of `reduce`.
import tensorflow as tf

from strategy_clinic import build_strategy


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


def divided(strategy, parts):
    """Each replica gets its list."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def refuses(strategy, values):
    try:
        strategy.reduce("SUM", values, axis=None)
    except tf.errors.InvalidArgumentError:
        return True
    return False


def device_of_total(strategy, parts, name):
    """The end of the name of the device that has the total, if this device is the current one."""
    with tf.device(name):
        return strategy.reduce("SUM", parts, axis=None).device[-5:]


def step_fn():
    i = tf.distribute.get_replica_context().replica_id_in_sync_group
    return tf.identity(i)


pair = build_strategy(two)
kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
alone = [build_strategy(two.but(strategy=name, devices=1)) for name in ("one_device", "default")]
NAMES = [f"{kind}:0", f"{kind}:1"]
per_replica_result = pair.run(step_fn)
total = pair.reduce("SUM", per_replica_result, axis=None)
places = [part.device[-5:] for part in pair.experimental_local_results(per_replica_result)]
even = divided(pair, [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
uneven = divided(pair, [[0.0, 1.0, 2.0, 3.0], [4.0, 8.0]])
means = divided(pair, [1.5, 6.0])
weighed = sum(value / 8 for value in (0, 1, 2, 3)) + sum(value / 4 for value in (4, 8))
session.judges(
    {
        "003-C16": [
            pair.reduce("SUM", even, axis=None).numpy().tolist() == [4, 6, 8, 10],
            float(pair.reduce("SUM", even, axis=0)) == 28,
        ],
        "003-C17": [
            refuses(pair, uneven),
            not refuses(pair, even),
            float(pair.reduce("SUM", uneven, axis=0)) == 18,
        ],
        "003-C18": [
            float(pair.reduce("MEAN", uneven, axis=0)) == 18 / 6,
            float(pair.reduce("MEAN", means, axis=None)) == weighed != 18 / 6,
        ],
        "003-C39": [device_of_total(pair, even, name) == name for name in NAMES],
        "003-C40": [
            *[float(pair.reduce(name, means, axis=None)) == 7.5 for name in ("SUM", "sum")],
            *[float(pair.reduce(name, means, axis=None)) == 3.75 for name in ("MEAN", "mean")],
            *[float(each.reduce("SUM", tf.constant([1.0, 2.0]), axis=0)) == 3 for each in alone],
        ],
        "003-C41": [
            total.numpy() == 1 and total.dtype == tf.int32 and total.shape == (),
            places == NAMES,
            total.device[-5:] == NAMES[0],
        ],
    },
)

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the same mistake in a training loss.
# - [FM44](fm44_fit_reports_another_number.ipynb): why `fit` reports a different number.
# - [FM39](fm39_per_replica_on_host.ipynb): how to use what `strategy.run` returns.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): where `strategy.reduce` may be called.
