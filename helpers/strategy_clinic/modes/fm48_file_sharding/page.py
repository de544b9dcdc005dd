# %% [markdown]
# # FM48. `Could not apply FILE based sharding`: fewer files than workers
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: … Could not apply FILE based sharding: the dataset only has 1 file(s), which is not enough for the required 2 shards/workers. If you are using datasets with distribution strategy, consider setting the auto sharding policy to either DATA or OFF …` | the first step on several workers | 2, 3 |
# | `Found an unshardable source dataset` | a warning for data that come from no files: nothing is wrong | 2, 3 |
#
# By default TensorFlow gives each worker files of its own if the dataset reads files, and raises if there are fewer files than
# workers.
#
# *Raises on Keras 2 and 3, under `MultiWorkerMirroredStrategy` only, in the first step.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm48",
    slug="file_sharding",
    title="`Could not apply FILE based sharding`: fewer files than workers",
    sees="the first step on several workers raises `Could not apply FILE based sharding`",
    fix="set the auto-shard policy of the dataset to `DATA`, or split the data into more files",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Could not apply FILE based sharding: the dataset only has \d+ file\(s\)",
            strategies=("multi_worker",),
        ),
    ),
    prints="sum of all examples: 36.0",
    exercise_prints="sum of all examples: 36.0",
    unavailable={"parameter_server": "each of its workers gets a dataset of its own"},
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm48", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two workers add up the numbers from 1 to 8, which are in one file. The same program runs in two processes on this machine. Each
# finds the other in the environment variable `TF_CONFIG`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# With the policy `DATA` every worker reads all files and keeps its share of the examples. This needs no change of the files. If
# reading is slow, split the data into many files of equal size instead. Their number should be a multiple of the number of
# workers. The default, `AUTO`, then reads each file on one worker only.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In `fit` of Keras 2 it is the same: `model.fit(dataset.with_options(options))`. Keras 3 raises the message in `fit`, too; its
# `fit` does not run on several workers anyway. [FM47](fm47_chief_saves_alone.ipynb) has the lines that start two workers.
#
# ## Why
#
# Each worker is a process with an input pipeline of its own. `experimental_distribute_dataset` and `fit` change this pipeline so
# that the workers share the examples. The policy says how:
#
# - `FILE`: each worker reads some of the files. Fewer files than workers are an error.
# - `DATA`: each worker reads everything and skips the examples of the other workers.
# - `OFF`: each worker uses everything. Choose it if the program already gives each worker files of its own, or if the examples
#   are drawn at random, with another seed on each worker.
# - `AUTO`, the default: `FILE` if the dataset reads files, even if they are too few, and `DATA` if it reads none.
#
# In the run above only one worker raises. The other one waits for it, so look at the log of every worker. On one machine with
# several GPUs there is one pipeline, and nothing is sharded.
#
# `AUTO` does not look at the sizes of the files. If they differ, some workers run out of data before the last step of the epoch.
#
# The default is not the right policy for a single file.
# [tensorflow#36846](https://github.com/tensorflow/tensorflow/issues/36846) reports the message of TensorFlow 2.1.
#
# The table shows how often each example is used on two workers. See
# [Distributed input](https://www.tensorflow.org/tutorials/distribute/input#sharding).

# %% tags=["figure"]
# The fixed program with other policies and other data, on two workers.
from strategy_clinic import figures

workers = session.setup.but(strategy="multi_worker", devices=2)
SOURCES = {
    "one file": 'TextLineDataset(["numbers.txt"])',
    "two files": 'TextLineDataset(["numbers.txt", "numbers.txt"])',
    "no file": "Dataset.range(1, 9).map(tf.as_string)",
}
POLICIES = ("AUTO", "DATA", "OFF")
programs = {
    (policy, source): text.replace("AutoShardPolicy.DATA", f"AutoShardPolicy.{policy}")
    for source, text in session.variants("fixed", SOURCES["one file"], SOURCES).items()
    for policy in POLICIES
}


def use(printed, once):
    """How often each example was used, if their sum is `once` when each is used once."""
    if not printed.startswith("sum"):
        return "raises"
    return {1: "once", 2: "twice"}[float(printed.split(":")[1]) / once]


USES = {policy: [] for policy in POLICIES}
for (policy, source), (printed,) in session.prints(programs, [workers]).items():
    USES[policy].append(use(printed, 72 if source == "two files" else 36))
figures.words(USES, list(SOURCES), {"raises", "twice"}, "How often is each example used?")

# %% [markdown]
# ## Try other setups
#
# Every strategy of one process reads the file in one pipeline, and both programs print `36.0`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two workers with both versions of Keras, on two devices of one process, and on a TPU as the clinic emulates it:

# %% tags=["table"]
both = [workers, workers.but(keras=session.setup.other_keras)]
one = [workers.but(strategy="mirrored"), workers.but(strategy="tpu_traced", devices=8)]
session.table(both + one)

# %% [markdown]
# ## Exercise
#
# There is one file for each worker here, and the script switches sharding off. Each example is used twice, once on each worker.
# Change the program so that each is used once. It should print `36.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM42](fm42_input_runs_out.ipynb): the input ends before the last step, on one worker or on all.
# - [FM21](fm21_dataset_misdistributed.ipynb): every replica gets the whole batch, because the dataset is not distributed.
# - [FM41](fm41_multi_worker_start.ipynb): the program stops before it reads any data.
