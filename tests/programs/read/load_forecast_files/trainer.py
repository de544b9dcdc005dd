"""Training of one fold on all devices."""
import logging

import numpy as np
import tensorflow as tf

from model import huber

log = logging.getLogger("forecast")


class Trainer:
    def __init__(self, cfg, strategy, model, optimizer):
        self.cfg, self.strategy = cfg, strategy
        self.model, self.optimizer = model, optimizer
        self.replicas = strategy.num_replicas_in_sync

    # ---------------------------------------------------------------- data
    def _distribute(self, windows, batch, partial):
        data = tf.data.Dataset.from_tensor_slices((windows.history, windows.target))
        return self.strategy.experimental_distribute_dataset(data.batch(batch, drop_remainder=not partial))

    def batches(self, windows, epoch):
        order = np.random.default_rng([self.cfg.seed, epoch]).permutation(len(windows))
        shuffled = type(windows)(windows.history[order], windows.target[order])
        return self._distribute(shuffled, self.cfg.batch, partial=False)

    # --------------------------------------------------------------- steps
    def objective(self, history, target):
        guess = self.model(history, training=True)
        fit = tf.nn.compute_average_loss(huber(target, guess), global_batch_size=self.cfg.batch)
        return fit + self.penalty()

    def penalty(self):
        squares = [tf.nn.l2_loss(w) for w in self.model.trainable_variables if len(w.shape) > 1]
        return self.cfg.decay * tf.add_n(squares) / self.replicas

    def limited(self, gradients):
        """Gradients of the whole batch, limited together; each replica hands in its share of them."""
        whole = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        clipped, _ = tf.clip_by_global_norm(whole, self.cfg.max_norm)
        return [g / self.replicas for g in clipped]

    def _learn(self, history, target):
        with tf.GradientTape() as tape:
            loss = self.objective(history, target)
        variables = self.model.trainable_variables
        gradients = self.limited(tape.gradient(loss, variables))
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    def _errors(self, history, target):
        per_window = tf.reduce_mean(tf.abs(target - self.model(history, training=False)), axis=-1)
        return tf.reduce_sum(per_window), tf.cast(tf.size(per_window), tf.float32)

    @tf.function(reduce_retracing=True)
    def learn(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self._learn, args=batch), axis=None)

    @tf.function(reduce_retracing=True)
    def errors(self, batch):
        total, count = self.strategy.run(self._errors, args=batch)
        return self.strategy.reduce("SUM", total, axis=None), self.strategy.reduce("SUM", count, axis=None)

    # ---------------------------------------------------------------- loop
    def fit(self, windows):
        for epoch in range(self.cfg.epochs):
            losses = [self.learn(batch) for batch in self.batches(windows, epoch)]
            log.info("  epoch %d loss %.5f", epoch, np.mean([float(l) for l in losses]))

    def mean_absolute_error(self, windows):
        total = count = 0.0
        for batch in self._distribute(windows, self.cfg.batch, partial=True):
            t, c = self.errors(batch)
            total, count = total + float(t), count + float(c)
        return total / count
