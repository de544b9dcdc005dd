# %% [markdown]
# # What is wrong with your program?
#
# This notebook runs your training program without changes on virtual devices of one CPU, and compares the runs on different
# numbers of devices. It marks the line of each failure that a run has shown, with the proof, the fix and the notebook about it.
# Your files are not changed. It takes as long as four to eight runs of your program, and 13 at most in
# what was measured.

# %% [markdown]
# ## Choose a program
#
# `program` is the text of your program, or the path of a `.py` or `.ipynb` file. If it is empty, the example below is examined.
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
# Each run is a separate process, and what it writes is kept apart, so neither this kernel nor your files are changed. If you
# interrupt the kernel, you see what was found until then. Below the program is what each replica held in the step in which the
# runs part, and in those around it.

# %% tags=["machine"]
from strategy_clinic import examiner

found = examiner.marked_up(program or example, counts, keras, show=True)

# %% [markdown]
# ## Your program
#
# Paste it and press the button. Pasted text runs in an empty folder, and a file runs with the files of its folder. Make the
# training short: use a small part of the data and one epoch. *Also show what each replica holds* makes two more runs, which end
# after a few steps. *Also try repairs in copies* examines a copy with each repair that can be written, and shows the changed lines
# of those that the runs have proven. Nothing leaves this machine.

# %% tags=["panel"]
box = examiner.program_box()

# %% [markdown]
# ## How to read the answer
#
# - A finding reports what a run has shown: an exception, an object in a wrong state, or values that differ between numbers of
#   devices. It never reports a mere suspicion. *Nothing found* means that no rule has found a failure, not that there is none.
# - Runs are compared at the same global batch size, and only if a second run on the same devices gives the same values.
# - In a notebook, lines are counted in each cell. Magics and shell lines are run; those left out are listed on the card.
# - In any notebook, after `%load_ext strategy_clinic`, `%%examine` above a cell examines that cell, with the earlier cells whose
#   names it uses; `%%examine --show` also shows what each replica holds, and `%%examine --mend` proven repairs.
# - `clinic examine train.py` does the same in a terminal. It also kills a program that looks for its
#   own saves, and starts it again, because only then do you see what a file lacks; `--restart` does so at three moments.
