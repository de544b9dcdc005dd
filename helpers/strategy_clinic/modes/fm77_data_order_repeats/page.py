# %% [markdown]
# # FM77. `shuffle` after a restart: the order of the examples begins again
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `epoch 3 has the order of epoch: 1` | `shuffle(8, seed=1)`, stopped after two epochs and started again | 2, 3 |
# | no message: `different orders in six epochs: 3` | `np.random.default_rng(1)` that a restart makes again | 2, 3 |
#
# A checkpoint of the model contains no place in the data. A seed that is the same at each start gives the orders of the first
# epochs again.
#
# *Wrong result without an error, with every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm77",
    slug="data_order_repeats",
    title="`shuffle` after a restart: the order of the examples begins again",
    sees="a training that was stopped and continued takes the examples in the order of its first epochs again",
    fix="take the seed from the number of the epoch, `shuffle(1000, seed=epoch)`, or keep the iterator in the checkpoint",
    document="004",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"it prints 'epoch 3 has the order of epoch: 1'"),),
    prints="epoch 3 has the order of epoch: 3",
    exercise_prints="different orders in six epochs: 6",
    unavailable={
        "multi_worker": "each of its processes would need a folder of its own",
        "parameter_server": "a dataset is made for each of its workers there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm77", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# `start` is what a script does each time that it is started. The first call ends after two epochs, as if the process had been
# stopped, and the second continues from the checkpoint. Each epoch is one batch, whose order is kept.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Make the dataset of each epoch with the number of the epoch as its seed. The number is in the checkpoint, so a restart makes the
# order that the epoch would have had.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In `fit`, let a callback write the number into a variable. The function of `flat_map` is called when an epoch begins, so it makes
# a dataset with the seed of that epoch:
#
# ```python
# epoch = tf.Variable(0, dtype=tf.int64)
# count = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda number, logs: epoch.assign(number))
# data = tf.data.Dataset.range(1).flat_map(lambda _: examples.shuffle(1000, seed=epoch)).batch(8)
# ```
#
# A program that is stopped in the middle of an epoch begins that epoch again, and trains on its first batches twice. Keep the
# number of the batch in the checkpoint, too, and begin with `examples.batch(8).skip(number)`. Without a strategy,
# `tf.train.Checkpoint(model=model, iterator=iterator)` also continues with the next batch. The iterator of a distributed dataset
# and that of `from_generator` cannot be saved: both raise.
#
# ## Why
#
# `shuffle` with a seed draws a new order for each epoch, from a generator that the dataset keeps. A restart creates the dataset
# again, and its generator begins with the same seed. The same happens after `set_random_seed`, and with a generator of NumPy that
# the program makes with a fixed seed. It also happens in one process that makes the dataset with the same seed in each epoch.
#
# A job that is stopped every few epochs trains on the same few orders for ever. If it is always stopped in its first epoch, it
# never takes the last examples. Without a seed, the orders differ at each start, and no training can be repeated. See [`Dataset.shuffle`](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle).
#
# The table shows which orders epochs 3 and 4 have if a program is started again after two.

# %% tags=["figure"]
# A program that trains four epochs, and then two again as after a restart, with other data and both versions of Keras.
from strategy_clinic import figures

SEEING = """import tensorflow as tf

strategy = tf.distribute.get_strategy()
seen, epoch = [], tf.Variable(0, dtype=tf.int64)
count = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda number, logs: epoch.assign(number))


class Seeing(tf.keras.layers.Layer):
    def call(self, inputs):
        tf.py_function(lambda part: seen.extend(part.numpy().ravel().tolist()), [inputs], [])
        return inputs


def start(first, last):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input((1,)), Seeing(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x = tf.reshape(tf.range(8.0), (8, 1))
    examples = tf.data.Dataset.from_tensor_slices((x, x))
    seen.clear()
    model.fit(DATA, initial_epoch=first, epochs=last, verbose=0, callbacks=[count])
    return [seen[place : place + 8] for place in range(0, len(seen), 8)]


whole, again = start(0, 4), start(2, 4)
print(", ".join(str(whole.index(order) + 1) for order in again))
"""
SAVED = """import tensorflow as tf

strategy = tf.distribute.get_strategy()


def orders(iterator, epochs):
    return [[int(next(iterator)) for _ in range(8)] for _ in range(epochs)]


examples = tf.data.Dataset.range(8).shuffle(8, seed=1).repeat()
iterator = iter(examples)
whole = orders(iterator, 2)
path = tf.train.Checkpoint(iterator=iterator).save("saved/iterator")
whole += orders(iterator, 2)
restored = iter(examples)
tf.train.Checkpoint(iterator=restored).restore(path)
print(", ".join(str(whole.index(order) + 1) for order in orders(restored, 2)))
"""
LOCAL = 'tf.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(examples)'
SERVED = "tf.data.Dataset.from_generator(lambda: range(99), output_signature=tf.TensorSpec((), tf.int64))"
EPOCH = "tf.data.Dataset.range(1).flat_map(lambda _: examples.shuffle(8, seed=epoch)).batch(4)"
DATA = {
    "set_random_seed(1), shuffle(8)": "examples.shuffle(8).batch(4)",
    "shuffle(8, seed=1)": "examples.shuffle(8, seed=1).batch(4)",
    "seed=epoch": EPOCH,
}
programs = {name: SEEING.replace("DATA", data) for name, data in DATA.items()}
programs |= {
    "iterator in a checkpoint": SAVED,
    "iterator of a distributed dataset": SAVED.replace("iter(examples)", f"iter({LOCAL})"),
    "iterator of from_generator": SAVED.replace("iter(examples)", f"iter({SERVED})"),
}
plain = session.setup.but(strategy="default", devices=1)
both = [plain.but(keras=3), plain.but(keras=2)]
printed = session.prints(programs, both)
WRONG = ["1, 2", "ValueError", "FailedPreconditionError"]
TITLE = "Which orders do epochs 3 and 4 have after a restart?"
figures.words(printed, ["Keras 3", "Keras 2"], WRONG, TITLE)

# %% [markdown]
# ## Try other setups
#
# The order is the same under every strategy, on any number of devices, and with both versions of Keras.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, and on two and four mirrored devices:

# %% tags=["table"]
two = plain.but(strategy="mirrored", devices=2)
session.table([plain, two, two.but(devices=4)])

# %% [markdown]
# ## Exercise
#
# Here a generator of NumPy draws the order of each epoch. The training is stopped after three epochs and continued for three.
# Change the program so that all six epochs have an order of their own.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM54](fm54_callbacks_forget.ipynb): callbacks forget their best value after a restart.
# - [FM05](fm05_untracked_variable.ipynb): a variable of your own that no checkpoint contains.
# - [FM69](fm69_fit_skips_epochs.ipynb): after a backup `fit` skips epochs.
# - [FM26](fm26_replica_count_changed.ipynb): training continues on another number of devices.
