import keras
import numpy as np
import tensorflow as tf

from . import objectives
from .figures import FigureFeed
from .network import build_network
from .records import Keeper, Records


class Coach:
    """Trains the network on the figures and keeps the records."""

    def __init__(self, settings, strategy):
        self.settings, self.strategy = settings, strategy
        self.feed = FigureFeed(settings, strategy)
        with strategy.scope():
            self.network = build_network(settings)
            self.optimizer = keras.optimizers.SGD(settings.rate, momentum=settings.momentum)
            self.optimizer.build(self.network.trainable_variables)
        self.records = Records()
        self.keeper = Keeper(settings.folder, network=self.network, optimizer=self.optimizer, records=self.records)

    def _learn(self, picture, truth, visible):
        with tf.GradientTape() as tape:
            found, spread = self.network(picture, training=True)
            loss = objectives.objective(truth, visible, found, spread, self.settings.smooth_share)
        weights = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def _examine(self, picture, truth, visible):
        found, _ = self.network(picture, training=False)
        return objectives.error_sums(truth, visible, found)

    def _total(self, values):
        return tf.nest.map_structure(lambda v: self.strategy.reduce("SUM", v, axis=None), values)

    @tf.function
    def learn(self, *batch):
        return self._total(self.strategy.run(self._learn, args=batch))

    @tf.function
    def examine(self, *batch):
        distance, joints = self.strategy.run(self._examine, args=batch)
        return self._total((distance, joints))

    def held_out_error(self):
        distance = joints = 0.0
        for batch in self.feed.held_out():
            d, j = self.examine(*batch)
            distance, joints = distance + float(d), joints + float(j)
        return distance / joints

    def train(self):
        if self.keeper.load():
            print(f"resumed after epoch {int(self.records.epoch)}")
        s, loss = self.settings, 0.0
        while int(self.records.epoch) < s.epochs and int(self.records.stale) < s.patience:
            number = int(self.records.epoch)
            self.optimizer.learning_rate.assign(s.rate * float(self.records.heat))
            loss = float(np.mean([float(self.learn(*batch)) for batch in self.feed.epoch(number)]))
            error = self.held_out_error()
            better = self.records.judge(error, s.needed_gain, s.cool_by)
            print(f"epoch {number}: loss {loss:.5f} error {error:.4f}{' (best)' if better else ''}")
            if better:
                self.keeper.store_best(self.network)
            self.records.epoch.assign(number + 1)
            self.keeper.store()
        return loss

    def best_error(self):
        self.network.load_weights(self.keeper.best_file)
        return self.held_out_error()
