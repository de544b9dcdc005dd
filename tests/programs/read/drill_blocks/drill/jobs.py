"""Three jobs that are run one after the other: two trainers, and the display in the cabin.

    python -m drill.jobs
"""
import argparse
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

from .holes import READINGS, readings, shifts
from .net import SpeedNet

BATCH = 40


class Trainer:
    def __init__(self, strategy, rate):
        self.strategy = strategy
        with strategy.scope():
            self.net = SpeedNet()
            self.net(np.zeros((1, READINGS), "float32"))
            self.optimizer = keras.optimizers.SGD(rate, momentum=0.9)
            self.optimizer.build(self.net.trainable_variables)
        self.saved = tf.train.Checkpoint(net=self.net, optimizer=self.optimizer)

    def on_part(self, x, y):
        with tf.GradientTape() as tape:
            each = (self.net(x, training=True) - y) ** 2
            loss = tf.nn.compute_average_loss(each, global_batch_size=BATCH)
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def fit(self, data, epochs):
        @tf.function
        def step(x, y):
            return self.strategy.reduce("SUM", self.strategy.run(self.on_part, args=(x, y)), axis=None)

        for epoch in range(epochs):
            batches = self.strategy.experimental_distribute_dataset(shifts(data, BATCH, epoch))
            losses = [float(step(*batch)) for batch in batches]
        return float(np.mean(losses))

    def error(self, data):
        x, y = data
        return float(np.mean((self.net(x).numpy() - y) ** 2))


def pretrain(strategy, told):
    """Learns in the quarry where there are many readings."""
    trainer = Trainer(strategy, told.rate)
    loss = trainer.fit(readings(400, 1, "limestone"), told.epochs)
    path = trainer.saved.save(os.path.join(told.folder, "limestone"))
    print(f"limestone: loss {loss:.5f}, kept as {os.path.basename(path)}", flush=True)
    return loss


def transfer(strategy, told):
    """Goes on in the other quarry, carefully."""
    trainer = Trainer(strategy, told.careful)
    before = trainer.error(readings(200, 3, "limestone"))
    trainer.saved.restore(tf.train.latest_checkpoint(told.folder)).assert_existing_objects_matched()
    trainer.optimizer.learning_rate = told.careful
    after = trainer.error(readings(200, 3, "limestone"))
    print(f"limestone, restored: {before:.4f} -> {after:.4f}")
    loss = trainer.fit(readings(120, 2, "granite"), 3)
    return trainer, loss, after


def display(path):
    """The error of what the cabin shows; it has the network only, and one device."""
    net = SpeedNet()
    net(np.zeros((1, READINGS), "float32"))
    tf.train.Checkpoint(net=net).read(path).assert_existing_objects_matched()
    x, y = readings(200, 4, "granite")
    return float(np.mean((net(x).numpy() - y) ** 2))


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("--epochs", type=int, default=4)
    reader.add_argument("--rate", type=float, default=0.02)
    reader.add_argument("--careful", type=float, default=0.004)
    reader.add_argument("--folder", default="")
    told = reader.parse_args()
    told.folder = told.folder or tempfile.mkdtemp()
    keras.utils.set_random_seed(70)
    strategy = tf.distribute.MirroredStrategy()
    first = pretrain(strategy, told)
    trainer, second, restored = transfer(strategy, told)
    path = tf.train.Checkpoint(net=trainer.net).write(os.path.join(told.folder, "cabin"))
    granite = trainer.error(readings(200, 4, "granite"))
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in trainer.net.trainable_variables)
    print(f"limestone {first:.4f} restored {restored:.4f} granite {second:.4f} unseen {granite:.4f}"
          f" in the cabin {display(path):.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
