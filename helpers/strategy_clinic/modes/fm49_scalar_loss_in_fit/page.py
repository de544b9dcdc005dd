# %% [markdown]
# # FM49. `loss=` function with `tf.reduce_mean` in `fit`: each update is too large
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `loss: 2.0  bias after one step: [0.2]` | `fit` on two devices; 1.0 and [0.1] on one, 4.0 and [0.4] on four | 3 |
#
# Keras 3 divides the loss of each replica by the number of replicas, but not if the loss function returns one number. Keras's
# [guide](https://keras.io/api/losses/#creating-custom-losses) asks for "an array of losses (one of sample in the input batch)".
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy`, central storage, and an emulated TPU, if `fit` gets
# no `sample_weight`.*

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
# All errors are 1, so the loss should be 1.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Return one value for each example: take the mean over the last axis only. Keras computes the mean over the examples. Outputs
# with no axis but the first need no mean.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# This is right for images, too. With one `sample_weight` for each image, take the mean over all axes but the first:
# `axis=[1, 2, 3]`. A loss of a library may have an argument such as `reduction="none"`. Keras's own `"dice"` and `"tversky"`
# return one number: [FM55](fm55_loss_no_mean_of_examples.ipynb) is about losses that cannot be written for each example.
#
# ## Why
#
# Under a strategy each replica computes the loss of its part, and `apply_gradients` adds the gradients of all replicas. `fit`
# therefore divides the loss of each replica by their number. In Keras 3 the function `reduce_values` in
# `keras/src/losses/loss.py` does this, after it has computed the mean over the examples. For one number there is nothing to
# compute, and it returns before it divides. The sum over the replicas is then n times too large.
#
# With SGD this acts like a learning rate that is n times as large, and Adam hides it. The reported loss is n times as large.
# Penalties of layers, such as `kernel_regularizer`, are divided, so they are too weak then.
#
# Is this a bug? By the guide the function is wrong. But Keras does not check it, `compile` asks for "a float tensor", Keras 2
# divides one number, Keras 3 divides it if there is a `sample_weight`, and its own `Dice` returns one. It is so from Keras 3.8 to
# 3.15 and in its development branch, on virtual devices of a CPU. It is not reported yet; `upstream/scalar_loss_in_fit.md` is
# ready. Keras 3.7 divides no loss in `fit` at all: every loss is n times as large there, and the fixed program fails, too.
#
# The table shows the size of one update for several losses, and the picture one step.

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
FIT = "batch_size=16, verbose=0"
WEIGHTED = f"{FIT}, sample_weight=tf.ones(16)"
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
texts = session.variants("broken", LINE, WAYS)
texts["reduce_mean, sample_weight"] = texts["reduce_mean"].replace(FIT, WEIGHTED)
printed = session.prints(texts, PLACES)
SIZES = {
    way: [float(words.split("[")[1][:-1]) / 0.1 for words in row] for way, row in printed.items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(SIZES, COLUMNS, [1.0] * len(PLACES), "How large is one update?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# The sum divided by the size of the whole batch is too small on Keras 2, which divides it again, and in a last, smaller batch.
#
# ## Try other setups
#
# With one device, or Keras 2, the loss is right.

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
# that it prints `[0.2]` on one, two, four or eight devices.

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
