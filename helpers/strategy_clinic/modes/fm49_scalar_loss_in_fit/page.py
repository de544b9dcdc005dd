# %% [markdown]
# # FM49. `loss=` function with `tf.reduce_mean` in `fit`: each update is too large
#
# ```text
# loss: 1.0  bias after one step: [0.1]     on one device, and on Keras 2
# loss: 2.0  bias after one step: [0.2]     on two devices
# loss: 4.0  bias after one step: [0.4]     on four
# ```
#
# Keras 3 divides the loss of each replica by the number of replicas, but not if the loss function returns one number.
#
# *Wrong result without an error, on Keras 3 only, under every strategy with more than one replica.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm49",
    slug="scalar_loss_in_fit",
    title="`loss=` function with `tf.reduce_mean` in `fit`: each update is too large",
    sees="`fit` reports a loss that is n times as large on n devices, trains too fast, or diverges",
    fix="return one value for each example: `tf.reduce_mean(..., axis=-1)` in the loss function",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'loss: [248]\.0  bias after one step: \[0\.[248]\]'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    claims=(),
    prints="loss: 1.0  bias after one step: [0.1]",
    exercise_prints="bias after one step: [0.2]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm49", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of `fit` with a loss function of your own. All errors are 1, so the loss is 1 on any number of devices.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Return one value for each example: take the mean over the last axis only. Keras computes the mean over the examples.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If an example has more than one axis, flatten it first, for example with `tf.keras.layers.Flatten()(errors)`. A loss of a
# library may have an argument such as `reduction="none"` for this.
#
# ## Why
#
# Under a strategy each replica computes the loss of its part of the batch, and `apply_gradients` adds the gradients of all
# replicas. `fit` therefore divides the loss of each replica by their number. In Keras 3 the function `reduce_values` in
# `keras/src/losses/loss.py` does this, after it has computed the mean over the examples. If the loss function returns one number,
# there is nothing to compute, and `reduce_values` returns before it divides. The sum over the replicas is then n times too large.
#
# With SGD this acts like a learning rate that is n times as large. Adam divides a gradient by its own size and hides the error in
# the update. The loss that `fit` and `evaluate` report is n times as large with every optimizer. Penalties of layers, such as
# `kernel_regularizer`, are divided correctly, so they are too weak beside this loss.
#
# This is a bug of Keras, in `keras/src/losses/loss.py`, from Keras 3.8 on and still in 3.15 and in its development branch.
# `upstream/scalar_loss_in_fit.md` is the report. Keras 3.7 and earlier divide no loss in `fit`, so there the fixed program fails,
# too.
#
# The table shows the size of one update, in updates on one device, for several ways to write the loss. See
# [Losses](https://keras.io/api/losses/#creating-custom-losses) in the documentation of Keras.

# %% tags=["figure"]
# The program above with other losses, on one, two and four devices.
from strategy_clinic import figures

LINE = (
    "return tf.reduce_mean(tf.square(labels - predictions))  # wrong: one number for all examples"
)
WAYS = {
    "reduce_mean": "return tf.reduce_mean(tf.square(labels - predictions))",
    "reduce_sum / 16": "return tf.reduce_sum(tf.square(labels - predictions)) / 16.0",
    "reduce_mean, axis=-1": "return tf.reduce_mean(tf.square(labels - predictions), axis=-1)",
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
SIZES = {
    way: [float(words.split("[")[1][:-1]) / 0.1 for words in row] for way, row in printed.items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(SIZES, COLUMNS, [1.0] * len(PLACES), "How large is one update?")

# %% [markdown]
# The sum divided by the size of the whole batch is right here. It is too small on Keras 2, which divides it again, and in the
# last, smaller batch.
#
# ## Try other setups
#
# With one device, or with Keras 2, the failure is gone. With more devices the update grows.

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
# This loss is a class, and examples with a positive label count twice. Its `call` returns one number, too. Change the program so
# that it prints `[0.2]` on any number of devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the same error in a custom training loop, on Keras 2 and 3.
# - [FM44](fm44_fit_reports_another_number.ipynb): a metric function that returns one number for its examples.
# - [FM19](fm19_partial_last_batch.ipynb): the last, smaller batch counts too much.
# - [FM26](fm26_replica_count_changed.ipynb): the loss is right, and the batch grows with the number of devices.
