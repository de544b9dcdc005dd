# %% [markdown]
# # FM41. `Collective ops must be configured at program startup`: create `MultiWorkerMirroredStrategy` first
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `RuntimeError: Collective ops must be configured at program startup` | `MultiWorkerMirroredStrategy()`, on every worker; `TF_CONFIG` is set | 2, 3 |
# | `WARNING:tensorflow:Collective ops is not configured at program startup. Some performance features may not be enabled.` | the same without `TF_CONFIG`: only a warning | 2, 3 |
#
# Something in the program, or in a module that it imports, has started TensorFlow's runtime before the line that creates the
# strategy.
#
# *Raises on Keras 2 and 3, under `MultiWorkerMirroredStrategy` with `TF_CONFIG`. One worker is enough.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm41",
    slug="multi_worker_start",
    title="`Collective ops must be configured at program startup`: create `MultiWorkerMirroredStrategy` first",
    sees="the line that creates the strategy raises `Collective ops must be configured at program startup`",
    fix="create the strategy in the first line after the imports",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"Collective ops must be configured at program startup",
            strategies=("multi_worker",),
        ),
    ),
    prints="sum of all examples: 28",
    exercise_prints="weight: 0.5",
    unavailable={
        "mirrored": "its CPU devices must be set up before the first operation",
        "central_storage": "its CPU devices must be set up before the first operation",
        "parameter_server": "each of its workers gets a dataset of its own",
        "tpu_traced": "the clinic describes a TPU before the first operation only",
    },
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm41", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two workers add up the numbers from 0 to 7. The same program runs in two processes on this machine, and both raise. To run it
# yourself, start it in one terminal as below, and in a second one with `"index": 1`:
#
# ```shell
# export TF_CONFIG='{"cluster": {"worker": ["localhost:12345", "localhost:12346"]}, "task": {"type": "worker", "index": 0}}'
# python broken.py
# ```

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create the strategy in the first line after the imports. In a notebook, restart the kernel and create it in the first cell.
# Creating it a second time in the same process is fine.
#
# If no line of your own comes before the strategy, look at the modules that you import. A variable or a constant at the top
# level of a module is enough. Import such a module after the strategy exists. To find the line, move the one that creates the
# strategy up, also between the imports, until it works.
#
# `fit` of Keras 3 does not run on several workers: see [FM78](fm78_fit_on_several_workers.ipynb).

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# The first operation of a process starts TensorFlow's runtime, with the devices of this process. Workers that add up gradients
# need a runtime that also knows the other workers. `MultiWorkerMirroredStrategy` configures it from `TF_CONFIG`, and this is
# possible only before the runtime starts.
#
# Everything that creates a tensor or a variable starts the runtime: a dataset, an optimizer, a metric and, on Keras 3, a
# layer with a seed of its own, such as `Dropout`. Setting the global seed does not, and neither does a layer that creates its
# variables later, such as `Dense`. `tf.config.list_logical_devices` starts the runtime, and `tf.config.list_physical_devices`
# does not.
#
# Without `TF_CONFIG` the strategy has one worker and needs no other. This is why a program can pass its tests on one machine
# and fail on two. A program that sets `TF_CONFIG` after this line trains alone in each process, and nothing is raised.
#
# Answers to [tensorflow#34568](https://github.com/tensorflow/tensorflow/issues/34568) and
# [#30551](https://github.com/tensorflow/tensorflow/issues/30551) date from 2019. The one that puts the strategy before the
# dataset and the model is still right.
#
# The table shows what the program may do before it creates the strategy. See [Multi-worker training with
# Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras).

# %% tags=["figure"]
# The fixed program with one line more, before the strategy.
from strategy_clinic import figures

workers = session.setup.but(strategy="multi_worker", devices=2)
LINES = {
    "set_random_seed(1)": "tf.keras.utils.set_random_seed(1)",
    "list_physical_devices()": "tf.config.list_physical_devices()",
    "Dense(1)": "tf.keras.layers.Dense(1)",
    "Dropout(0.5)": "tf.keras.layers.Dropout(0.5)",
    "Adam()": "tf.keras.optimizers.Adam()",
    "metrics.Mean()": "tf.keras.metrics.Mean()",
    "tf.Variable(1.0)": "tf.Variable(1.0)",
    "list_logical_devices()": "tf.config.list_logical_devices()",
}
FIRST = "import tensorflow as tf\n"
programs = {name: f"{FIRST}\n{line}\n" for name, line in LINES.items()}
BOTH = [workers.but(keras=3), workers.but(keras=2)]
printed = session.prints(session.variants("fixed", FIRST, programs), BOTH)
WORKS = {name: [words == session.mode.prints for words in row] for name, row in printed.items()}
figures.grid(WORKS, ["Keras 3", "Keras 2"], "works", "raises", "What may come before the strategy?")

# %% [markdown]
# ## Try other setups
#
# Without a strategy, and with `one_device`, the order does not matter, and both programs print `28`. `MirroredStrategy` on GPUs
# can be created later, too. The CPU devices of this clinic must be set up first: `Virtual devices cannot be modified after being
# initialized`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two workers with both versions of Keras, with a strategy for one device, and without a strategy:

# %% tags=["table"]
ONE = [workers.but(strategy=name, devices=1) for name in ("one_device", "default")]
session.table(BOTH + ONE)

# %% [markdown]
# ## Exercise
#
# Two lines come before the strategy here, and one of them starts the runtime. Change the program so that it takes its step on
# two workers. It should print `0.5`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM47](fm47_chief_saves_alone.ipynb): the workers train, and the chief waits for ever when it saves.
# - [FM48](fm48_file_sharding.ipynb): the first step raises, because there are fewer files than workers.
# - [FM36](fm36_replica_group_resized.ipynb): strategies of two sizes in one process.
# - [FM17](fm17_tpu_not_initialised.ipynb): the start of a program on a TPU.
