# %% [markdown]
# # FM57. `keras.distribution.set_distribution` on TensorFlow: accepted, and everything runs on one device
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `fit` runs on the first device, and the other devices do nothing | `set_distribution` | 3 |
# | `AttributeError: module 'keras.src.backend.tensorflow.distribution_lib' has no attribute 'num_processes'` | `DataParallel` and `ModelParallel` | 3 before 3.15 |
# | `AttributeError: module 'keras.src.backend.tensorflow.distribution_lib' has no attribute 'initialize'` | `keras.distribution.initialize` | 3 |
# | `AttributeError: module 'keras.src.backend.tensorflow.distribution_lib' has no attribute 'distribute_tensor'` | `keras.distribution.distribute_tensor` | 3 |
# | `AttributeError: module … has no attribute 'distribution'` | `keras.distribution` | 2 |
#
# With TensorFlow as its backend, Keras stores a distribution and never uses it.
#
# *Nothing is distributed and no error is raised, on Keras 3.15. Before 3.15 the first line raises. On Keras 2 the module does
# not exist.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm57",
    slug="keras_distribution_ignored",
    title="`keras.distribution.set_distribution` on TensorFlow: accepted, and everything runs on one device",
    sees="`keras.distribution` is set and training is no faster: all but the first device do nothing",
    fix="use a strategy of `tf.distribute`, or another backend of Keras",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom("AttributeError", r"has no attribute 'distribution'", keras=(2,)),
        Symptom(
            "SilentFailure",
            r"it prints 'all devices train: False', and right is 'all devices train: True'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
            since="keras 3.15",
        ),
        Symptom(
            "AttributeError", r"has no attribute 'num_processes'", keras=(3,), until="keras 3.15"
        ),
    ),
    prints="all devices train: True",
    exercise_prints="all devices evaluate: True",
    unavailable={
        "multi_worker": "`fit` of Keras 3 raises under it for another reason",
        "parameter_server": "its workers take their steps one by one",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm57", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The program chooses `DataParallel` over all devices and trains. Its loss function reads how many replicas take part. The last
# line compares this with the number of devices, for which alone it has a `MirroredStrategy`; the fix uses it.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create and compile the model in the scope of a strategy of `tf.distribute`. To choose a strategy for all lines that follow, as
# `set_distribution` does, call `tf.distribute.experimental_set_strategy(strategy)`.
#
# To keep `keras.distribution`, choose another backend before Keras is imported: `KERAS_BACKEND=jax`. The layers and losses of
# the program must then not use TensorFlow operations.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Keras 3 has two ways to use several devices. `keras.distribution` stores the chosen distribution, and the backend must ask for
# it when it creates a variable and when it takes a batch. The backend for TensorFlow never asks. Its part of the code,
# `keras/src/backend/tensorflow/distribution_lib.py`, begins with the words "DO NOT USE", and most of it is empty. The devices are
# not even checked: `DataParallel(devices=["gpu:0", "gpu:7"])` is accepted on a machine without a GPU.
#
# `ModelParallel` and `LayoutMap` are accepted and ignored, too. A model that is too large for one device is therefore created
# as a whole on the first one. `tf.distribute` does not split a model either: it copies each variable to every device.
#
# The guide [Distributed training with Keras 3](https://keras.io/guides/distribution/) says that this API works "across a variety
# of backends like JAX, TensorFlow and PyTorch"; its examples use JAX. In
# [keras#18983](https://github.com/keras-team/keras/issues/18983), an early report, the answer is to use `tf.distribute` with
# TensorFlow. That Keras accepts the call without a warning is a bug, in the file that is named above. It was seen on virtual devices
# of a CPU, and is not reported yet; `upstream/keras_distribution_tensorflow.md` is ready.
#
# The table shows on how many of two devices a program with each call trains and evaluates.

# %% tags=["figure"]
# The program above with other lines in place of the two that are wrong, and other methods in place of `fit`.
from strategy_clinic import figures

two = session.setup.but(strategy="mirrored", devices=2, keras=3)
WRONG = """data_parallel = tf.keras.distribution.DataParallel()  # wrong: TensorFlow does not use it
tf.keras.distribution.set_distribution(data_parallel)  # wrong
"""
KERAS = "tf.keras.distribution"
MESH = f"""mesh = {KERAS}.DeviceMesh((1, 2), ["batch", "model"], {KERAS}.list_devices())
layout = {KERAS}.LayoutMap(mesh)
layout["dense.*kernel"] = ("model", None)
{KERAS}.set_distribution({KERAS}.ModelParallel(layout_map=layout, batch_dim_name="batch"))
"""
WAYS = {
    "DataParallel()": WRONG,
    "ModelParallel(...)": MESH,
    "experimental_set_strategy": "tf.distribute.experimental_set_strategy(strategy)\n",
}
TRAINED = 'print("all devices train:", max(used) == strategy.num_replicas_in_sync)'
METHODS = {"fit": "model.fit(np.ones((8, 3)), ", "evaluate": "model.evaluate(np.ones((8, 3)), "}
DEVICES = {}
texts = session.variants("broken", WRONG, WAYS) | {"strategy.scope()": session.texts["fixed"]}
for way, text in texts.items():
    programs = {
        method: text.replace(METHODS["fit"], call).replace(TRAINED, "print(max(used))")
        for method, call in METHODS.items()
    }
    printed = session.prints(programs, [two])
    DEVICES[way] = [printed[method][0] for method in METHODS]
figures.words(DEVICES, list(METHODS), "1", "How many of two devices are used?")

# %% tags=["figure"]
# What each replica held in a step of both programs and how they ended, beside one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# On one device both programs print `True`. On Keras 2 the program above raises.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, and on two devices with the other version of Keras:

# %% tags=["table"]
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
session.table([*PLACES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program chooses the distribution in a `with` block and evaluates its model. Change it so that all devices take part. It
# should print `True`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM23](fm23_variable_outside_scope.ipynb): with a strategy, the model must be created in its scope.
# - [FM25](fm25_load_outside_scope.ipynb): a loaded model that stays on one device.
# - [FM21](fm21_dataset_misdistributed.ipynb): all devices work, and each takes the whole batch.
