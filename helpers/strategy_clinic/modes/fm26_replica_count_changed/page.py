# %% [markdown]
# # FM26. `batch_size * num_replicas_in_sync`: training resumed on more GPUs gives different weights
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `examples in each step: 16` | after loading on two devices; 8 on one, where it was saved, 32 on four | 2, 3 |
#
# The number of replicas is not in the file, it is in the script: a batch size for each replica, times the number of replicas.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with another number of replicas than before, in every format.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm26",
    slug="replica_count_changed",
    title="`batch_size * num_replicas_in_sync`: training resumed on more GPUs gives different weights",
    sees="a model saved on one device loads on several, predicts the same, and trains differently",
    fix="keep the global batch size, or scale the learning rate with it",
    document="004",
    switches=("strategy", "devices", "save_format"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'examples in each step: (16|32|64)', and right is 'examples in each step: 8'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="examples in each step: 8\nkernel after two epochs: 0.815",
    exercise_prints="kernel after one epoch: 0.57",
    observed=("model", "loaded"),
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run in several workers",
        "parameter_server": "its workers take their steps one by one, so no batch is divided",
        "saved_model": "the loaded object has functions to call, and no `fit`",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 4
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm26", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The first run trains on one device with batches of 8 and saves the model. The second run loads it on four devices and trains
# for another epoch. On one device the kernel would then be 0.815. The first model gets its loss as an object, because an `.h5`
# file with the string does not open: [FM27](fm27_format_not_loadable.ipynb).

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Decide how many examples one step has, and save that number with the run. `fit` divides `batch_size` among the replicas, so do
# not multiply it. In a custom loop batch by the whole size, and `experimental_distribute_dataset` divides it. In an input
# function the part of one replica is `context.get_per_replica_batch_size(batch_size)`:
# [FM21](fm21_dataset_misdistributed.ipynb).
#
# With Keras 3.15, choose a batch that all replicas can share evenly. Otherwise the first batch makes `fit` and `evaluate` raise
# `Inputs to operation AddN … must have the same size and shape`: with three devices, use 9 in place of 8; `drop_remainder=True`
# does not help. `predict` and Keras 2 have no such limit.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Small batches use many devices badly. You can keep 8 examples for each replica and multiply the learning rate by the number of
# replicas. It is a common rule, but a new schedule: the weights differ from those of the old run.
#
# ## Why
#
# A file contains one array for each variable. A load in the scope gives this array to every copy of the variable, so the number
# of devices may change. The batch size is not in the file.
#
# With four times the batch, an epoch has a quarter of the steps. The learning rate was chosen for the old batch.
#
# [TensorFlow's tutorial](https://www.tensorflow.org/tutorials/distribute/keras#set_up_the_input_pipeline) multiplies in this way,
# `BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync`, for training that stays on the same devices.
#
# No load failed, in five formats, on more devices and on fewer, and a checkpoint restored its optimizer, too.
#
# On Keras 3.7 (released with TensorFlow 2.18), `fit` adds up the gradients of the replicas and does not divide the sum, so no
# batch size repairs it. Keras 3.10 is right. [FM37](fm37_loss_scaled_per_replica.ipynb) is this mistake in a step of your own.

# %% tags=["figure"]
# Both programs on one, two and four devices.
from strategy_clinic import figures

FIT = "loaded.fit(inputs, labels, batch_size=8, verbose=0)  # fixed: of all replicas together"
ROWS = {
    "8 * num_replicas_in_sync": "8 * strategy.num_replicas_in_sync",
    "8": "8",
}
WAYS = {
    name: f"loaded.fit(inputs, labels, batch_size={code}, verbose=0)" for name, code in ROWS.items()
}
four = session.setup.but(strategy="mirrored", devices=4, save_format="keras")
PLACES = [four.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(session.variants("fixed", FIT, WAYS), PLACES)
COUNTS = {
    way: [words.splitlines()[0].split(": ")[-1] for words in row] for way, row in printed.items()
}
COLUMNS = [f"{place.devices} device{'s' * (place.devices > 1)}" for place in PLACES]
figures.words(COUNTS, COLUMNS, ["16", "32"], "Examples in each step, for two values of batch_size")

# %% tags=["figure"]
# Calls with a batch of five examples, which two devices cannot share evenly, and with a batch of six.
CALLS = {
    "fit": "loaded.fit(inputs, labels, batch_size={}, verbose=0)",
    "evaluate": "loaded.evaluate(inputs, labels, batch_size={}, verbose=0)",
    "predict": "loaded.predict(inputs, batch_size={}, verbose=0)",
}
SIZES = {f"{name}, {size}": code.format(size) for name, code in CALLS.items() for size in (5, 6)}
BEFORE, _, _ = session.texts["fixed"].partition(FIT)
CALLED = {name: f"{BEFORE}{code}\nprint('runs')\n" for name, code in SIZES.items()}
two = [four.but(devices=2, keras=version) for version in (3, 2)]
RUNS = session.prints(CALLED, two)
figures.words(
    RUNS, ["Keras 3", "Keras 2"], "InvalidArgumentError", "Batches of 5 and 6 on two devices"
)

# %% [markdown]
# ## Try other setups
#
# With one device the failure is gone. Change the save format: it makes no difference.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one and four devices, in two other formats, and with the other version of Keras:

# %% tags=["table"]
session.table(
    [
        four.but(devices=1),
        four,
        four.but(save_format="h5"),
        four.but(save_format="checkpoint"),
        four.but(keras=session.setup.other_keras),
    ]
)

# %% [markdown]
# ## Exercise
#
# This program gives `fit` a dataset whose batches grow with the number of replicas. On one device it prints `kernel after one
# epoch: 0.57`. Change the program so that it prints this on one, two and four devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM25](fm25_load_outside_scope.ipynb): a model that is loaded outside the scope trains on one device.
# - [FM29](fm29_optimizer_state_lost.ipynb): the other reason why resumed training gives different weights.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): a loss that is divided by the examples of one replica.
# - [FM36](fm36_replica_group_resized.ipynb): another number of devices in the same process.
# - What an answer on `load_model` says: [document 004](documents/004_load_model.ipynb).
