# %% [markdown]
# # FM25. `load_model` outside `strategy.scope()`: only one GPU is used
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `loaded.distribute_strategy.num_replicas_in_sync` is 1 | load, compile and `fit` outside the scope | 2, 3 |
# | `RuntimeError: Need to be inside "with strategy.scope()" for …` | load outside; `compile("adam")` in the scope: see FM03 | 3 |
# | `RuntimeError: Mixing different tf.distribute.Strategy objects: …` | load and `compile("adam")` outside; `fit` in the scope: see FM03 | 3 |
# | `` ValueError: `colocate_vars_with` must only be passed a variable … `` | load outside; `compile` and `fit` in the scope; Keras 2: only `fit` in the scope | 2, 3 |
# | `AssertionError` | load outside a file that has the optimizer; `fit` in the scope | 2, 3 |
# | `ValueError: Variable (…) was not created in the distribution strategy scope of …` | load outside; `compile` in the scope: see FM03 | 2 |
#
# A file holds no strategy. The load creates the variables again, and without the scope each of them is on one device.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica, in every format.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm25",
    slug="load_outside_scope",
    title="`load_model` outside `strategy.scope()`: only one GPU is used",
    sees="a loaded model works, but all devices except one stay idle",
    fix="load and compile the model inside `with strategy.scope():`",
    document="004",
    switches=("strategy", "devices", "save_format"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'idle devices: [137]', and right is 'idle devices: 0'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="idle devices: 0",
    exercise_prints="idle devices: 0",
    observed=("model", "loaded"),
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run in several workers",
        "parameter_server": "its `fit` needs a dataset for each worker",
        "saved_model": "the loaded object has functions to call, and no `fit`",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm25", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A model is created under a strategy with two devices and saved. Another script would load it the next day. Here it is loaded at
# once and trained. The training runs, and one device has nothing to do.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Open the scope around the load, and around `compile`. If the file contains the state of the optimizer, leave `compile` out:
# [FM29](fm29_optimizer_state_lost.ipynb). The file may come from any number of devices.
#
# To be sure, write `assert loaded.distribute_strategy is strategy` after the load.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# A file contains numbers and, in some formats, the architecture. It contains no strategy. A load creates variables. If the
# scope of a `MirroredStrategy` is open, the strategy creates a copy of each variable on every device. Outside the scope
# TensorFlow creates an ordinary variable on one device. The result is a valid model, so there is no message.
#
# On GPUs, look at the utilization that `nvidia-smi` shows, and not at the memory: [by
# default](https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth) TensorFlow reserves memory on every visible GPU.
#
# On Keras 3, `compile` outside the scope creates an optimizer that has no strategy. With plain SGD the model trains, and
# every replica counts each step. With Adam, or with momentum, `fit` raises `Mixing different tf.distribute.Strategy objects`.
#
# `fit` uses the strategy under which the model was created. A model that was created without one uses the current strategy.
# The first picture moves each of the three lines into the scope, and the second shows who holds the examples. With Adam on
# Keras 3 the model trains on all devices only if both `load_model` and `compile` are in it. On Keras 2 `load_model` is enough.
# See [FM03](fm03_scope_mismatch.ipynb) for the errors.

# %% tags=["figure"]
# The last lines of the program, each in the scope or outside it, on two devices.
import itertools

from strategy_clinic import figures

LOAD = 'loaded = tf.keras.models.load_model("model.keras")'
COMPILE = 'loaded.compile("adam", "mse")'
FIT = "loaded.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=16, verbose=0)"
LINES = f"{LOAD}  # wrong: no scope around it\n{COMPILE}\n{FIT}"


def placed(*in_scope):
    places = zip((LOAD, COMPILE, FIT), in_scope)
    return "\n".join(f"with strategy.scope():\n    {line}" if yes else line for line, yes in places)


ROWS = {"nothing": (0, 0), "compile": (1, 0), "fit": (0, 1), "compile and fit": (1, 1)}
COLUMNS = {"load_model\noutside": 0, "load_model\nin the scope": 1}
WORDS = {"idle devices: 0": "all devices", "idle devices: 1": "one device"}
two = session.setup.but(strategy="mirrored", devices=2, save_format="keras")
texts = {
    (row, column): placed(load, *rest)
    for (row, rest), (column, load) in itertools.product(ROWS.items(), COLUMNS.items())
}
printed = session.prints(session.variants("broken", LINES, texts), [two])
found = {row: [WORDS.get(*printed[row, column] * 2) for column in COLUMNS] for row in ROWS}
bad = {word for words in found.values() for word in words} - {"all devices"}
figures.words(found, list(COLUMNS), bad, "What else is in the scope?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device, or the strategy `default`, nothing is idle. Change the save format: the failure stays in each of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one and two devices, in two other formats, and with the other version of Keras:

# %% tags=["table"]
session.table(
    [
        two.but(devices=1),
        two,
        two.but(save_format="h5"),
        two.but(save_format="checkpoint"),
        two.but(keras=session.setup.other_keras),
    ]
)

# %% [markdown]
# ## Exercise
#
# A cross-validation trains a fresh copy of a model for each fold. `clone_model` creates variables, too. Change the function so
# that each copy trains on all devices. It should print `idle devices: 0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM03](fm03_scope_mismatch.ipynb): the errors of a model and an optimizer that belong to different strategies.
# - [FM26](fm26_replica_count_changed.ipynb): the model is loaded on another number of devices, and the batch changes with it.
# - [FM27](fm27_format_not_loadable.ipynb): `load_model` refuses the file.
# - [FM23](fm23_variable_outside_scope.ipynb): one variable outside the scope.
# - What an answer on `load_model` says: [document 004](documents/004_load_model.ipynb).
