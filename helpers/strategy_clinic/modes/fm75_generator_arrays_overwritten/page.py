# %% [markdown]
# # FM75. A generator's arrays change while a model trains, or the process ends: slices on CPU devices
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: another loss in the second epoch | `fit` or a step on two CPU devices; the array has other numbers | 2, 3 |
# | no message: another `.npy` file | the same with `np.load("x.npy", mmap_mode="r+")` | 2, 3 |
# | `Segmentation fault (core dumped)` | the same with `mmap_mode="r"`, status 139; in Jupyter the kernel dies | 2, 3 |
#
# A generator yields a slice of an array, so TensorFlow gets the memory of the array. The strategy divides the batch, and an
# operation of the first replica writes its result there.
#
# *Wrong data without an error, on Keras 2 and 3, under `MirroredStrategy` and central storage on two CPU devices or more. On one
# device, and without a strategy, nothing changes.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm75",
    slug="generator_arrays_overwritten",
    title="A generator's arrays change while a model trains, or the process ends: slices on CPU devices",
    sees="the arrays or the file from which a generator reads have other numbers after a training on several CPU devices",
    fix="yield copies: `array[start:end].copy()`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'the array has ones only: False'",
            strategies=("mirrored", "central_storage"),
            devices=(2, 4, 8),
        ),
    ),
    prints="the array has ones only: True",
    exercise_prints="the targets are as before: True",
    unavailable={"parameter_server": "its workers do not take a distributed dataset"},
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm75", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One epoch over an array of ones, in four batches. The step only reads them.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Yield a copy of each slice. TensorFlow then writes into memory that nobody reads again.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# An array that was indexed with a list of numbers, such as `array[order[start:end]]`, is a copy already. So is what
# `tf.data.Dataset.from_tensor_slices(array)` reads, and what `fit` does with arrays that it gets itself. A generator or a
# `PyDataset` that `fit` gets needs the copy, and so does a function in `tf.numpy_function`. Give `fit` of Keras 3 a
# `tf.data.Dataset.from_generator(...)`, not the generator itself: it reads the first batch twice, and the copy can change in
# between, as it did in 2 of 24 runs.
#
# ## Why
#
# TensorFlow uses the memory of an array that begins at a multiple of 64 bytes, instead of copying it. A memory-mapped array does.
# An array that was made by NumPy does so in some cases, and `array[start:end]` depends on `start`, too. So the same program can be
# right with other sizes.
#
# Such memory is marked, so that no operation writes into it. `experimental_distribute_dataset` cuts each batch into parts, and the
# parts lose the mark. The first replica's device is that of the dataset, so its part is not copied. An operation that needs its
# input no longer, such as `part * 2`, reuses the memory for its result.
#
# This is a bug of TensorFlow, in 2.18 to 2.21 and in its nightly: no documentation says that a dataset may write into what it is
# given, and without a strategy none does. It was seen on virtual devices of a CPU;
# `upstream/distributed_generator_overwrites_arrays.md` is ready to be reported. On a GPU each part is copied to the device: on an
# H200 that was split in two, the array stayed as it was.
#
# The table shows what becomes of the array.

# %% tags=["figure"]
# The program with other ways to read the array, and with other slices, on one, two and four devices.
from strategy_clinic import figures

LINE = 'array = np.load("ones.npy", mmap_mode="c")'
WAYS = {
    'mmap_mode="c"': LINE,
    'mmap_mode="r+"': LINE.replace('"c"', '"r+"'),
    'mmap_mode="r"': LINE.replace('"c"', '"r"'),
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
programs = session.variants("broken", LINE, WAYS)
yielded = "array[start : start + 16]"
programs["array[[0, 1, ...]]"] = programs['mmap_mode="c"'].replace(
    f"yield {yielded}", "yield array[list(range(start, start + 16))]"
)
WORDS = {"True": "as before", "False": "changed", "ChildProcessError": "process ends"}
printed = {
    way: [WORDS[words.split()[-1]] for words in row]
    for way, row in session.prints(programs, PLACES).items()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(printed, COLUMNS, ("changed", "process ends"), "What becomes of the array?")

# %% [markdown]
# ## Try other setups
#
# With one device the array stays as it is.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices:

# %% tags=["table"]
session.table(PLACES)

# %% [markdown]
# ## Exercise
#
# This program trains with `fit`, and its targets are in a file. After the training they are others. Change it so that it prints
# `True` on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM42](fm42_input_runs_out.ipynb): the input ends before the last step.
# - [FM21](fm21_dataset_misdistributed.ipynb): a dataset that is distributed in another way than you expect.
# - [FM53](fm53_same_work_on_every_replica.ipynb): each replica gets the whole batch.
