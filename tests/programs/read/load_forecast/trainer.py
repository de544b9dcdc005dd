"""Training of the forecaster with early stopping; stops and goes on at epoch boundaries."""
import os

import keras
import tensorflow as tf

from network import build_network
from series import epoch_order
from statefile import StateFile


class Trainer:

    def __init__(self, strategy, options, train, valid):
        self.strategy, self.options = strategy, options
        self.train, self.valid = train, valid
        with strategy.scope():
            self.model = build_network()
            self.optimizer = keras.optimizers.SGD(options.rate, momentum=0.9, nesterov=True)
            self.optimizer.build(self.model.trainable_variables)
        self.checkpoint = tf.train.Checkpoint(weights=self.model.weights, slots=self.optimizer.variables)
        os.makedirs(options.folder, exist_ok=True)
        self.states = StateFile(os.path.join(options.folder, "state.json"))
        self.epoch, self.best, self.waited, self.best_prefix = 0, float("inf"), 0, None

    # ---- state ---------------------------------------------------------
    def resume(self):
        state = self.states.read()
        if state is None:
            self.set_rate()
            return
        self.checkpoint.read(state["newest"]).assert_consumed()
        self.epoch = state["epoch"]
        self.best = state["best"]
        self.waited = state["waited"]
        self.best_prefix = state["best_prefix"]
        self.set_rate()
        print(f"resumed after epoch {self.epoch}, best {self.best:.4f}")

    def save(self, improved):
        prefix = self.checkpoint.write(os.path.join(self.options.folder, f"epoch-{self.epoch:03d}"))
        if improved:
            self.best_prefix = prefix
        self.states.write(newest=prefix, epoch=self.epoch, best=self.best,
                          waited=self.waited, best_prefix=self.best_prefix)

    def set_rate(self):
        self.optimizer.learning_rate = self.options.rate * self.options.decay ** self.epoch

    # ---- one epoch -----------------------------------------------------
    def batches(self, part, order=None):
        data = tf.data.Dataset.from_tensor_slices(
            part if order is None else tuple(array[order] for array in part))
        return self.strategy.experimental_distribute_dataset(data.batch(self.options.batch))

    @tf.function
    def train_step(self, x, y):
        def step(x, y):
            with tf.GradientTape() as tape:
                losses = keras.losses.huber(y, self.model(x, training=True))
                loss = tf.nn.compute_average_loss(losses, global_batch_size=self.options.batch)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            return tf.reduce_sum(losses)
        return self.strategy.reduce("SUM", self.strategy.run(step, args=(x, y)), axis=None)

    @tf.function
    def valid_step(self, x, y):
        def step(x, y):
            errors = tf.abs(y - self.model(x, training=False))
            return tf.reduce_mean(errors, axis=-1)
        errors = self.strategy.run(step, args=(x, y))
        return self.strategy.reduce("SUM", errors, axis=0)

    def run_epoch(self):
        order = epoch_order(len(self.train[0]), self.options.seed, self.epoch)
        total = sum(float(self.train_step(x, y)) for x, y in self.batches(self.train, order))
        return total / len(order)

    def validate(self):
        total = 0.0
        for x, y in self.batches(self.valid):
            total += float(self.valid_step(x, y))
        return total / len(self.valid[0])

    # ---- all epochs ----------------------------------------------------
    def fit(self):
        while self.epoch < self.options.epochs and self.waited <= self.options.patience:
            loss = self.run_epoch()
            error = self.validate()
            self.epoch += 1
            improved = error < self.best - self.options.min_delta
            if improved:
                self.best, self.waited = error, 0
            else:
                self.waited += 1
            print(f"epoch {self.epoch}: loss {loss:.5f} validation {error:.5f} waited {self.waited}")
            self.save(improved)
            self.set_rate()
        last = self.validate(), sum(w.sum() for w in self.model.get_weights())
        self.checkpoint.read(self.best_prefix)
        return last
