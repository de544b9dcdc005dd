"""Exons and introns along a strand, labelled by a convolution and a conditional random field.

genes.npz holds all that a stopped run needs; the rate is lowered when the held-out strands gain less than a fifth.
"""
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

from crf import ChainField

BASES, LABELS, LENGTH = 4, 3, 14
BATCH, EPOCHS = 32, 6
STATE = Path("genes.npz")


def strands(count, seed):
    """Bases that depend on a hidden label which stays for a while; strands differ in length."""
    rng = np.random.default_rng(seed)
    stays = np.array([[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.0, 0.3, 0.7]])
    emits = np.array([[0.3, 0.2, 0.2, 0.3], [0.1, 0.4, 0.4, 0.1], [0.5, 0.1, 0.1, 0.3]])
    labels = np.zeros((count, LENGTH), "int32")
    bases = np.zeros((count, LENGTH), "int32")
    for i in range(count):
        label = rng.integers(2)
        for t in range(LENGTH):
            labels[i, t], bases[i, t] = label, rng.choice(BASES, p=emits[label])
            label = rng.choice(LABELS, p=stays[label])
    mask = (np.arange(LENGTH) < rng.integers(6, LENGTH + 1, (count, 1))).astype("float32")
    return bases, labels, mask


class Annotator(keras.Model):
    def __init__(self):
        super().__init__()
        self.bases = keras.layers.Embedding(BASES, 6)
        self.around = keras.layers.Conv1D(16, 5, padding="same", activation="tanh")
        self.emit = keras.layers.Dense(LABELS)
        self.chain = ChainField(LABELS)

    def call(self, bases):
        return self.chain(self.emit(self.around(self.bases(bases))))

    def surprise(self, bases, labels, mask):
        return self.chain.surprise(self(bases), labels, mask)


strategy = tf.distribute.MirroredStrategy()
keras.utils.set_random_seed(14)
with strategy.scope():
    model = Annotator()
    model(np.zeros((1, LENGTH), "int32"))
    optimizer = keras.optimizers.SGD(0.2, momentum=0.9)
    optimizer.build(model.trainable_variables)


def on_part(bases, labels, mask):
    with tf.GradientTape() as tape:
        each = model.surprise(bases, labels, mask)
        loss = tf.nn.compute_average_loss(each / LENGTH, global_batch_size=BATCH)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def step(bases, labels, mask):
    return strategy.reduce("SUM", strategy.run(on_part, args=(bases, labels, mask)), axis=None)


def epoch_of(data, number):
    order = np.random.default_rng([2, number]).permutation(len(data[0]))
    rows = tf.data.Dataset.from_tensor_slices(tuple(each[order] for each in data)).batch(BATCH, drop_remainder=True)
    return strategy.experimental_distribute_dataset(rows)


def keep(epoch, best):
    weights = {f"weight_{i}": each.numpy() for i, each in enumerate(model.weights)}
    slots = {f"slot_{i}": each.numpy() for i, each in enumerate(optimizer.variables)}
    np.savez("kept.npz", epoch=epoch, best=best, **weights, **slots)
    os.replace("kept.npz", STATE)  # never half a file


def go_on():
    """Returns the number of epochs done and the best held-out surprise."""
    if not STATE.exists():
        return 0, np.inf
    with np.load(STATE) as kept:
        for i, each in enumerate(model.weights):
            each.assign(kept[f"weight_{i}"])
        for i, each in enumerate(optimizer.variables):
            each.assign(kept[f"slot_{i}"])
        return int(kept["epoch"]), float(kept["best"])


def main():
    known, held = strands(192, 1), strands(64, 2)
    done, best = go_on()
    for epoch in range(done, EPOCHS):
        losses = [float(step(*batch)) for batch in epoch_of(known, epoch)]
        surprise = float(tf.reduce_mean(model.surprise(*held)))
        if surprise > 0.8 * best:
            optimizer.learning_rate = 0.7 * float(optimizer.learning_rate.numpy())
        best = min(best, surprise)
        keep(epoch + 1, best)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, held out {surprise:.4f}", flush=True)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in model.trainable_variables)
    moves = float(np.abs(model.chain.moves.numpy()).sum())
    print(f"held out {float(tf.reduce_mean(model.surprise(*held))):.4f} rate {float(optimizer.learning_rate.numpy()):.5f}"
          f" moves {moves:.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
