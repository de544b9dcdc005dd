# %% [markdown]
# # FM37. `tf.reduce_mean` of the loss in `strategy.run`: each update is too large
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `bias after one step: [0.2]` | two devices; [0.1] on one, [0.4] on four | 2, 3 |
# | `` ValueError: Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for loss reduction when losses are used with `tf.distribute.Strategy`, … `` | a loss object with its default reduction in the step | 2 |
#
# `apply_gradients` adds the gradients of all replicas. Each replica must therefore divide its loss by the size of the whole
# batch, and `tf.reduce_mean` divides by the size of its own part.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm37",
    slug="loss_scaled_per_replica",
    title="`tf.reduce_mean` of the loss in `strategy.run`: each update is too large",
    sees="the same step trains too fast, or diverges, and worse with every device that is added",
    fix="divide by the whole batch: `tf.nn.compute_average_loss(losses, global_batch_size=...)`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'bias after one step: \[0\.[248]\]'",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="bias after one step: [0.1]",
    exercise_prints="bias after one step: [0.05]",
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

session = clinic.open("fm37", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of a custom training loop on two devices. On one device it prints `[0.1]`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# `tf.nn.compute_average_loss` divides the sum of a replica's losses by the size of the whole batch. Its argument must have one
# loss for each example: average a loss per pixel or per word over its other axes first. Penalties, such as those in
# `model.losses`, are divided by the number of replicas: `tf.nn.scale_regularization_loss`.
#
# Pass `global_batch_size`. Each example of the epoch then has the same weight, and a smaller last batch makes a smaller step, on
# one device too. Without it, two replicas with 3 and 2 examples are averaged wrongly. `drop_remainder=True` avoids both.
#
# With a loss object, create it with `reduction="none"` and give its result to `compute_average_loss`. On Keras 3,
# `loss_object(labels, predictions)` with the default reduction is right too if all parts of the batch are equally large: it
# divides the mean by the number of replicas.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# The gradient of a batch is the sum of the gradients of its examples, divided by their number. Under a strategy each replica
# computes this for its part of the batch, and `apply_gradients` adds the results. With n replicas each part has 1/n of the
# examples. A mean over the part divides by a number that is n times too small, so the sum is n times too large. A strategy
# cannot correct this, because it does not know how the loss was computed.
#
# With SGD the error acts like a learning rate that is n times as large. Adam divides a gradient by its own size and hides the
# error, unless gradients are clipped or a penalty on the weights is added.
#
# The tables show the size of one update for several ways to write the loss, and that of a last batch of 5. Between them, one
# step of both programs on two devices: the losses of the first do not add up to that of one device. See [Custom training with
# tf.distribute](https://www.tensorflow.org/tutorials/distribute/custom_training#define_the_loss_function).

# %% tags=["figure"]
# The program above with other lines for the loss, on one, two and four devices.
import tensorflow as tf

from strategy_clinic import figures

LINE = "loss = tf.reduce_mean(errors)  # wrong: the mean over the examples of one replica"
WAYS = {
    "tf.reduce_mean": "loss = tf.reduce_mean(errors)",
    "compute_average_loss": "loss = tf.nn.compute_average_loss(errors, global_batch_size=16)",
}
OBJECT = {
    "MeanSquaredError()": "loss = tf.keras.losses.MeanSquaredError()(labels, model(inputs))",
}
WAYS |= OBJECT if session.setup.keras == 3 else {}  # on Keras 2 it raises
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
SIZES = {
    way: [float(words.split("[")[1][:-1]) / 0.1 for words in row] for way, row in printed.items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(SIZES, COLUMNS, [1.0] * len(PLACES), "How large is one update?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% tags=["figure"]
# The bias after a last batch of 5, where the other batches have 16 examples. Two devices should print what one prints.
ERRORS = tf.ones((8, 4, 4))  # of eight images of 16 pixels each
assert tf.nn.compute_average_loss(ERRORS, global_batch_size=8) == 16.0
assert tf.nn.compute_average_loss(tf.reduce_mean(ERRORS, [1, 2]), global_batch_size=8) == 1.0
ENDS = {
    "tf.reduce_mean": WAYS["tf.reduce_mean"],
    "compute_average_loss, no size": "loss = tf.nn.compute_average_loss(errors)",
    "compute_average_loss, 16": WAYS["compute_average_loss"],
    'the same with reduction="none"': 'none = tf.keras.losses.MeanSquaredError(reduction="none")\n'
    "        errors = none(labels, model(inputs))\n"
    f"        {WAYS['compute_average_loss']}",
}
ENDS |= OBJECT if session.setup.keras == 3 else {}
FULL = "tf.ones((16, 3)), tf.ones((16, 1))"
FIVE = "tf.ones((5, 3)), tf.constant([[1.0], [1.0], [1.0], [2.0], [2.0]])"
ends = session.variants("broken", LINE, ENDS)
printed = session.prints({way: text.replace(FULL, FIVE) for way, text in ends.items()}, PLACES[:2])
LAST = {way: [words.split("[")[1][:-1] for words in row] for way, row in printed.items()}
wrong = {two_devices for one_device, two_devices in LAST.values() if one_device != two_devices}
figures.words(LAST, COLUMNS[:2], wrong, "The bias after a last batch of 5")

# %% [markdown]
# ## Try other setups
#
# With one device the failure is gone. With more devices the update grows.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, and on two devices with the other version of Keras:

# %% tags=["table"]
session.table([*PLACES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The loss of this step is divided correctly, but its penalty for a large bias is added once for each replica. Change the program
# so that the penalty counts once. On any number of devices it should print `[0.05]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM39](fm39_per_replica_on_host.ipynb): how to report this loss. Use `reduce("SUM", ...)` for a loss that is divided as above.
# - [FM26](fm26_replica_count_changed.ipynb): the loss is right, and the batch grows with the number of devices.
# - [FM38](fm38_replica_state_diverges.ipynb): statistics that each replica computes from its own examples.
# - [FM21](fm21_dataset_misdistributed.ipynb): every replica gets the whole batch, which has the same effect.
