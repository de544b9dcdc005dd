"""Trains a forecaster of the load; started again, it goes on after the last epoch that is saved."""
import pathlib

import numpy as np
import tensorflow as tf
from keras import optimizers

import grid

EPOCHS, BATCH, FOLDER = 6, 32, pathlib.Path("states")

strategy = tf.distribute.MirroredStrategy()
data = grid.windows(320, seed=4)
past, future, known = grid.windows(64, seed=5)
shuffler = np.random.default_rng(100)
orders = [shuffler.permutation(len(data[0])) for _ in range(EPOCHS)]

with strategy.scope():
    # Near hours matter more at first; the far ones catch up.
    slope = tf.Variable(1.5, trainable=False, name="slope")
    last = tf.Variable(0.0, trainable=False, name="last")

    def emphasis():
        return tf.exp(-slope * tf.range(grid.AHEAD, dtype=tf.float32))

    model = grid.Forecaster(12, emphasis)
    model(past[:1])
    model.compile(optimizer=optimizers.Adam(0.01))
    model.optimizer.build(model.trainable_variables)

state = tf.train.Checkpoint(model=model, slope=slope, last=last)


def newest():
    """The path of the last state, and how many epochs it has seen."""
    found = sorted(FOLDER.glob("epoch-*.index"))
    if not found:
        return None, 0
    path = found[-1].with_suffix("")
    return str(path), int(path.name.split("-")[1].split(".")[0])


def epoch_of(number):
    order = orders[number]
    return tf.data.Dataset.from_tensor_slices(tuple(part[order] for part in data)).batch(BATCH)


path, begin = newest()
if path:
    state.restore(path)

for number in range(begin, EPOCHS):
    told = model.fit(epoch_of(number), verbose=0)
    last.assign(told.history["error"][0])
    slope.assign(0.7 * slope)
    state.write(str(FOLDER / f"epoch-{number + 1}"))
    print(f"epoch {number + 1} error {last.numpy():.4f} slope {slope.numpy():.3f}")

guess = model.predict(past, batch_size=BATCH, verbose=0)
misses = np.sqrt((known * (guess - future) ** 2).sum(0) / known.sum(0))
print("rmse", *(f"{miss:.4f}" for miss in misses), f"slope {slope.numpy():.4f} error {last.numpy():.4f}")
