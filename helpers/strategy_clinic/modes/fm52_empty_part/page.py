# %% [markdown]
# # FM52. `BatchNormalization` turns `nan` on several devices: a replica without examples
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `all weights are numbers: False` | two devices or more: gamma is `nan` | 3 |
# | no message: `loss: nan` | every loss and prediction from then on | 3 |
# | `InvalidArgumentError: … Matrix size-incompatible: In[0]: [0,1], In[1]: [2,1]` | `Conv2D` on a CPU | 2, 3 |
#
# The last batch is smaller, and one replica gets no example of it. `BatchNormalization` of Keras 3 computes `nan` gradients
# from this empty part, and they are added to those of the other replicas.
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy` and an emulated TPU with more than one replica. On a
# CPU a convolution raises on both versions of Keras.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm52",
    slug="empty_part",
    title="`BatchNormalization` turns `nan` on several devices: a replica without examples",
    sees="loss and weights are `nan` after the first epoch on several devices, in a model with `BatchNormalization`",
    fix="use `batch(..., drop_remainder=True)`, so that each replica gets examples of every batch",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'all weights are numbers: False'",
            strategies=("mirrored", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    prints="all weights are numbers: True",
    exercise_prints="all weights are numbers: True",
    unavailable={
        "central_storage": "`BatchNormalization` of Keras 3 does not run there",
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept such a dataset there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm52", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One epoch of `fit` with 17 examples in batches of 16. The last batch has one example.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Leave out the last batch if it is smaller.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If no example may be left out, let the number of replicas divide the last batch, too: 5 examples on four replicas are parts
# of 2, 2, 1 and 0. Or call `repeat()` before `batch`, and pass `steps_per_epoch`. If you pass arrays to `fit`, build a
# dataset from them: `fit` has no `drop_remainder`. `BatchNormalization(synchronized=True)` helps, too: its mean is that of
# all replicas. Behind a convolution on a CPU it can raise `Shape mismatch in the collective instance`: see below.
#
# ## Why
#
# A strategy divides each batch between the replicas. If some parts have no example, these replicas still run the step. The
# mean of no examples is 0/0, which is `nan`. `BatchNormalization` needs the mean and variance of its part of the batch. So
# `gamma` becomes `nan`, and then all weights.
#
# Keras 2 checks for an empty part, and Keras 3 does not: its `moments`, in `keras/src/backend/tensorflow/nn.py`, calls
# `tf.nn.moments`. This is a bug of Keras, in all versions from 3.7 on and in its development branch. The documentation says
# nothing of empty parts. One may answer that such a batch should be left out, but `fit` makes it of arrays itself. It was
# seen on virtual devices of a CPU, not on GPUs; `upstream/batch_normalization_empty_part.md` is ready to be reported.
# TensorFlow 1 had it ([tensorflow#24320](https://github.com/tensorflow/tensorflow/issues/24320)).
#
# On CPUs TensorFlow uses oneDNN, and some of its operations fail for an empty part: the gradient of `MaxPooling2D` can abort
# the process, and `tf.nn.conv2d` returns the shape of its input, for which the next operation raises. Both are bugs of
# TensorFlow. Leave out the smaller batch, or set `TF_ENABLE_ONEDNN_OPTS=0` before TensorFlow is imported.
#
# A `train_step` of your own that returns one loss for each example raises in an uneven batch, with `Shapes of all inputs must
# match`, or `Inputs to operation AddN_7 of type AddN must have the same size and shape` before TensorFlow 2.21. Return
# `tf.reduce_mean(losses)` there. For the second message before the first step see [FM71](fm71_first_batch_of_fit.ipynb).
#
# The table shows whether the weights stay finite.

# %% tags=["figure"]
# The program with other numbers of examples, and with synchronized statistics, on one, two and four devices.
from strategy_clinic import figures

LINE = "examples = tf.reshape(tf.range(17.0) % 4, (17, 1))"
COUNTS = {f"{count} examples": LINE.replace("17", str(count)) for count in (16, 17, 18, 20)}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
programs = session.variants("broken", LINE, COUNTS)
plain = programs["17 examples"]
programs["17, synchronized"] = plain.replace("Normalization()", "Normalization(synchronized=True)")
WORDS = {"True": "finite", "False": "nan"}
printed = {
    count: [WORDS[words.split()[-1]] for words in row]
    for count, row in session.prints(programs, PLACES).items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(printed, COLUMNS, "nan", "What are the weights after one epoch?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, the weights stay finite.

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
# This program passes arrays to `fit`, and its model is convolutional. Change it so that all weights stay finite on one, two, four
# or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM38](fm38_replica_state_diverges.ipynb): each replica normalizes by the statistics of its own part.
# - [FM19](fm19_partial_last_batch.ipynb): the last, smaller batch counts too much in a mean.
# - [FM42](fm42_input_runs_out.ipynb): the input ends before the last step.
# - [FM51](fm51_overflow_on_one_replica.ipynb): weights that turn infinite in half precision.
