# %% [markdown]
# # What is wrong with your program?
#
# Here a training program is run as it is, on virtual devices of one CPU, watched, and compared with itself on another number of
# devices. Each failure mode that a run has shown is marked on the line to blame, with its proof, its fix and its notebook.

# %% [markdown]
# ## What is to be examined
#
# `program` is the text of a program of yours, or the path of a `.py` or `.ipynb` file; empty, it is the example below.
# `counts` are the numbers of devices to compare, and `keras` is 2 or 3.

# %% tags=["parameters"]
program = ""
counts = "1, 2"
keras = 3

# %% [markdown]
# The example trains under `MirroredStrategy`, raises nothing, and its loss falls.

# %%
example = """
import tensorflow as tf

BATCH = 16
tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.1)


def step(batch):
    with tf.GradientTape() as tape:
        errors = tf.square(model(batch)[:, 0] - 1.0)
        loss = tf.reduce_mean(errors)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train(batch):
    return strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)


data = tf.data.Dataset.from_tensor_slices(tf.random.normal((64, 3))).batch(BATCH)
for batch in strategy.experimental_distribute_dataset(data):
    print("loss", float(train(batch)))
"""

# %% [markdown]
# ## What the runs have shown
#
# Each run is a process of its own with a copy of the program's folder, so neither this kernel nor your files are touched. The
# stop button ends it with what is known by then.

# %% tags=["machine"]
from strategy_clinic import examiner

found = examiner.marked_up(program or example, counts, keras)

# %% [markdown]
# ## Your program
#
# Paste it and press the button. A text runs in an empty folder; of a file, a copy of its folder comes along. Make the training
# short, by a small part of the data and one epoch: two or three runs of it are made. Nothing leaves this machine.

# %% tags=["panel"]
box = examiner.program_box()

# %% [markdown]
# ## How to read the answer
#
# - A finding is what a run has shown: an exception, an object that was seen, or values that differ between numbers of devices.
#   What is merely suspicious is not told. *Nothing found* means that no rule has seen anything, not that there is nothing.
# - Programs are compared at the same global batch, and only if they repeat themselves on the same devices.
# - In a notebook, lines are counted in each cell. Magics and shell lines are left out, and the card says which.
# - In any notebook, after `%load_ext strategy_clinic`, `%%examine` above a cell examines that cell, with the cells that ran
#   before it if it uses names of theirs.
# - `clinic examine train.py` does the same in a terminal. `--restart` also kills the program after its first checkpoint and
#   starts it again, since what a checkpoint lacks shows only then.
