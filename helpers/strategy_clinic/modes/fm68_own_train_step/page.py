# %% [markdown]
# # FM68. A `train_step` of your own: `fit` reports a part of the loss, or 0.0
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `loss of zeros for twos: 2.0` | `fit` on two devices, in place of 4.0; 1.0 on four | 3 |
# | no message: `loss of zeros for twos: 3.6` | `fit` on two devices | 2 |
# | no message: `loss: 0.0000` | `train_step` that returns `{"loss": loss}`, on one device, too | 3 |
#
# Under a strategy a loss of Keras is divided by the number of replicas, so that gradients can be added up. The `train_step` of
# Keras multiplies again before it reports the loss, and one of your own does not.
#
# *Wrong number without an error, on Keras 2 and 3, under every strategy with more than one replica. The weights are right.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm68",
    slug="own_train_step",
    title="A `train_step` of your own: `fit` reports a part of the loss, or 0.0",
    sees="`fit` with a `train_step` of its own reports another loss on several devices, or 0.0, and the weights are right",
    fix="track `loss * tf.distribute.get_strategy().num_replicas_in_sync`, and return the result of the tracker, not the loss",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'loss of zeros for twos: (2\.0|1\.0|0\.5|3\.6|3\.0|2\.25)'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="loss of zeros for twos: 4.0",
    exercise_prints="bias after one step: [0.5]",
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

session = clinic.open("fm68", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The `train_step` of [Keras's guide](https://keras.io/guides/custom_train_step_in_tensorflow/). The model returns zeros and the
# labels are 2, so the loss of the first step is 4.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Multiply what you report, and not what you differentiate.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# The same holds for each `tf.keras.losses` object that `train_step` or `test_step` calls and reports. A metric of labels and
# predictions needs no factor.
#
# Return the result of a metric. On Keras 3, `return {"loss": loss}` shows 0.0, with one device and in `test_step`, too: if
# the keys are the names of the model's metrics, `fit` reports these metrics, and nobody has updated the metric `loss`. Under
# another name it shows that of the last batch.
#
# If the last batch can be smaller, add `sample_weight=tf.shape(x)[0]` to `update_state`. Without it each batch counts the
# same, on one device, too.
#
# ## Why
#
# So that gradients can be added up, each `Loss` of Keras divides by the number of replicas when it is called, on Keras 3 in
# `keras/src/losses/loss.py`. Keras's own `train_step` undoes this for the report by a function that is not public. Early
# stopping with a `baseline` is wrong. `upstream/loss_of_own_train_step.md` is ready to be reported. On Keras 2 `compute_loss`
# has updated the same metric before, so both numbers are mixed.
#
# A `Loss` object of Keras 3 that is called in the scope, outside of a replica, is divided, too (`upstream/loss_in_scope.md`).
# Functions such as `tf.keras.losses.MSE`, and `reduction="sum"`, are not.
#
# Keras 3.5 to 3.7 do not divide ([keras#20609](https://github.com/keras-team/keras/issues/20609)): on 3.7 the program reports
# 4.0, and its update is n times too large on n replicas, as is that of `fit` itself.
#
# Nothing divides a `tf.reduce_mean(...)` of your own, neither in `train_step` nor in a `compute_loss`. Its update is n times
# too large on n replicas: see [FM37](fm37_loss_scaled_per_replica.ipynb) for the custom loop. Divide it by
# `num_replicas_in_sync`, and multiply in the report. Keras multiplies what a `compute_loss` of your own returns, so there
# only divide. The example in the documentation of `compute_loss` does not; `upstream/compute_loss_overridden.md` is ready to
# be reported.
#
# The table, made on virtual devices of a CPU, shows loss and update of one step, and the picture the metric.

# %% tags=["figure"]
# The program above with other losses, with a penalty, and without a tracker: the loss, and how far the bias has moved.
from strategy_clinic import figures

LOSS, TRACK = "self.compute_loss(x=x, y=y, y_pred=self(x, training=True))", "update_state(loss)"
OBJECT = "tf.keras.losses.MeanSquaredError()(y, self(x, training=True))"
MEAN = "tf.reduce_mean(tf.square(y - self(x, training=True)))"
TIMES = "update_state(loss * tf.distribute.get_strategy().num_replicas_in_sync)"
SPLIT = f"{MEAN} / tf.distribute.get_strategy().num_replicas_in_sync"
RETURN = 'return {"loss": tracker.result()}'
PENALTY = 'kernel_initializer="zeros", bias_initializer="ones", bias_regularizer="l1"'
text = session.texts["broken"] + 'print("bias:", model.get_weights()[1][0])\n'
text = text.replace('compile("sgd"', "compile(tf.keras.optimizers.SGD(0.125)")
WAYS = {
    "compute_loss": [],
    "compute_loss, tracked x replicas": [(TRACK, TIMES)],
    "with a penalty, tracked x replicas": [
        (TRACK, TIMES),
        ('kernel_initializer="zeros"', PENALTY),
    ],
    "a Loss object": [(LOSS, OBJECT)],
    "tf.reduce_mean": [(LOSS, MEAN)],
    "tf.reduce_mean / replicas, tracked x replicas": [(LOSS, SPLIT), (TRACK, TIMES)],
    'return {"loss": loss}': [(TRACK, "result()"), (RETURN, 'return {"loss": loss}')],
}
programs = {}
for way, changes in WAYS.items():
    programs[way] = text
    for old, new in changes:
        programs[way] = programs[way].replace(old, new)
two = session.setup.but(strategy="mirrored", devices=2, keras=3)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(programs, PLACES)


def numbers(words):
    loss, bias = (line.split()[-1] for line in words.splitlines())
    return f"{loss} / {float(bias):.3g}"


SHOWN = {way: [numbers(words) for words in row] for way, row in printed.items()}
BAD = {cell for row in SHOWN.values() for cell in row if cell != row[0]} | {
    cell for cell in SHOWN['return {"loss": loss}']
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(SHOWN, COLUMNS, BAD, "Reported loss / bias after one step")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device both programs print 4.0.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
OTHERS = [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table([*PLACES, *OTHERS])

# %% [markdown]
# ## Exercise
#
# This model has its own `compute_loss`, and Keras's `train_step`. One step moves its bias from 0 to 0.5 on one device, and
# further on several. Make the update right on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): which number a loss is divided by in a custom loop.
# - [FM49](fm49_scalar_loss_in_fit.ipynb): a loss function that returns one number, in `compile`.
# - [FM44](fm44_fit_reports_another_number.ipynb): a metric of your own is another one on several devices.
# - [FM55](fm55_loss_no_mean_of_examples.ipynb): a loss that is no mean of the examples.
