from __future__ import annotations

from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from .cohort import Cohort


class CoxFit:
    hidden = (16, 8)
    rate = 0.15
    ridge = 0.01

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.net = keras.Sequential([keras.Input((7,))] + [
                keras.layers.Dense(n, "tanh", kernel_initializer=keras.initializers.GlorotUniform(seed=n)) for n in self.hidden
            ] + [keras.layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.GlorotUniform(seed=1))])
            self.optimizer = keras.optimizers.SGD(self.rate, momentum=0.7)
            self.optimizer.build(self.net.trainable_variables)
            self.events = tf.Variable(0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                                      aggregation=tf.VariableAggregation.SUM)

    def partial_likelihood(self, risk, days, happened):
        """For each patient with an event: against all of the batch who were still there."""
        context = tf.distribute.get_replica_context()
        everyone, their_days = context.all_gather(risk, axis=0), context.all_gather(days, axis=0)
        at_risk = tf.where(their_days[None] >= days[:, None], everyone[None], -1e9)
        return (tf.reduce_logsumexp(at_risk, axis=1) - risk) * happened

    def one_replica(self, x, days, happened):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            each = self.partial_likelihood(self.net(x, training=True)[:, 0], days, happened)
            events = context.all_reduce("SUM", tf.reduce_sum(happened))
            loss = tf.reduce_sum(each) / tf.maximum(events, 1.0)
            ridge = self.ridge * sum(tf.nn.l2_loss(w) for w in self.net.trainable_variables)
            total = loss + ridge / context.num_replicas_in_sync
        grads = tape.gradient(total, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))
        self.events.assign_add(tf.reduce_sum(happened))
        return {"loss": loss, "ridge": ridge / context.num_replicas_in_sync}

    @tf.function
    def _step(self, batch):
        results = self.strategy.run(self.one_replica, args=batch)
        return {name: self.strategy.reduce("SUM", value, axis=None) for name, value in results.items()}

    def epochs(self, cohort: Cohort, size: int, count: int) -> Iterator[dict[str, float]]:
        data = self.strategy.experimental_distribute_dataset(cohort.batches(size))
        for _ in range(count):
            self.events.assign(0.0)
            steps = [{k: float(v) for k, v in self._step(batch).items()} for batch in data]
            yield {k: float(np.mean([s[k] for s in steps])) for k in steps[0]} | {"events": float(self.events.read_value().numpy())}

    def risk(self, x: np.ndarray) -> np.ndarray:
        return self.net(x).numpy()[:, 0]
