# %% [markdown]
# # FM63. GPUs wait for one Python generator: more devices, and no more examples in a second
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: utilisation of all devices is low | `from_generator`, a `Sequence` without workers, a serial `map` | 2, 3 |
#
# A Python generator makes one example after the other. If it takes longer than a step, every step waits for it. More devices
# make the steps shorter, and the wait longer. The results are right.
#
# *Slow without a message, on Keras 2 and 3, with and without a strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm63",
    slug="input_bound",
    title="GPUs wait for one Python generator: more devices, and no more examples in a second",
    sees="training is as slow with more devices, and all of them are idle while the next batch is made",
    fix="make examples in parallel: `map` with `num_parallel_calls`, `interleave`, or threads within the generator",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"it prints 'examples are read in parallel: False'"),),
    prints="examples are read in parallel: True",
    exercise_prints="examples are read in parallel: True",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "its `fit` needs a dataset for each worker",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm63", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# `read` stands for reading a file: it takes 20 milliseconds and needs no processor. It writes `1` to a list when it begins and
# `-1` when it ends. The sum of the list up to any moment is the number of examples that are being read then.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Make a dataset of numbers or paths, and read in `map` with `num_parallel_calls`. The order of the examples stays the same.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Wherever operations of TensorFlow can read the files, use them in place of `tf.numpy_function`, by one of these lines:
#
# ```python
# files = tf.data.Dataset.from_tensor_slices(paths)
# # one example in each file:
# data = files.map(lambda path: decode(tf.io.read_file(path)), num_parallel_calls=tf.data.AUTOTUNE)
# # TFRecord files:
# data = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
# ```
#
# - To keep the generator, let threads read within it: `pool.map(read, range(128))` of a `ThreadPoolExecutor(32)`. It begins to
#   read everything at once, and keeps in memory what is not yet taken.
# - For a `Sequence` (a `PyDataset` in Keras 3), pass `workers=8`: to `fit` in Keras 2, to its `__init__` in Keras 3.
# - Python code that computes, rather than waits, runs in one thread at a time. Replace it by operations of TensorFlow, such as
#   `tf.io.decode_jpeg`, or write the examples to TFRecord files once.
# - `prefetch` makes the next batch while a step runs. It does not help if making a batch takes longer than a step. Under a
#   strategy, a distributed dataset prefetches by itself.
#
# ## Why
#
# A generator is one Python function with one state. TensorFlow calls it for one example, waits, and calls it again, in one
# thread. `batch`, `prefetch` and the strategy only take what it has made. Where no example needs the one before it, as with a
# list of numbers or paths, several can be made at once.
#
# Whether a program waits for its input shows in a share of time: `clinic examine --counts train.py` reports how much of the time
# between two steps a loop waits for `next`, and finds a generator that runs nearly all the time. A step on a CPU takes longer
# than on a GPU, so a program that waits there waits on a machine with a GPU, too, if that has no more cores for its input.
#
# The table shows how many examples are read at the same time. See [Better performance with the tf.data
# API](https://www.tensorflow.org/guide/data_performance).

# %% tags=["figure"]
# The program above with other datasets, on one, two and four devices: is more than one example read at a time?
from strategy_clinic import figures

LINE = """spec = tf.TensorSpec((), tf.float32)  # wrong
data = tf.data.Dataset.from_generator(lambda: map(read, range(128)), output_signature=spec)  # wrong
"""
LOAD = "load = lambda n: tf.numpy_function(read, [n], tf.float64)\n"
POOL = "from concurrent.futures import ThreadPoolExecutor\n"
WAYS = {
    "from_generator": LINE,
    "from_generator, prefetch(8)": LINE + "data = data.prefetch(8)\n",
    "threads in the generator": POOL + LINE.replace("map(", "ThreadPoolExecutor(32).map("),
    "map": f"{LOAD}data = tf.data.Dataset.range(128).map(load)\n",
    "map, num_parallel_calls=8": (
        f"{LOAD}data = tf.data.Dataset.range(128).map(load, num_parallel_calls=8)\n"
    ),
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
PARALLEL = {way: [words == session.mode.prints for words in row] for way, row in printed.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.grid(PARALLEL, COLUMNS, "several", "one", "How many examples are read at the same time?")

# %% [markdown]
# ## Try other setups
#
# The number of devices changes nothing: the examples are made before a strategy divides them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
ALONE = two.but(strategy="default", devices=1)
STRATEGIES = [two, two.but(devices=4), two.but(strategy="central_storage")]
session.table([ALONE, *STRATEGIES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The generator of this program makes whole batches, and the batches are prefetched. Change it so that it prints `True`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM61](fm61_host_round_trips.ipynb): the devices wait for Python, which executes each step.
# - [FM42](fm42_input_runs_out.ipynb): the data ends before the training does.
# - [FM21](fm21_dataset_misdistributed.ipynb): each device gets a whole batch.
# - [FM43](fm43_retracing_every_step.ipynb): each step is traced again.
