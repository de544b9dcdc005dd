import keras
import numpy as np
import tensorflow as tf

from .clouds import Stream
from .config import Config
from .net import SetNet


class Trainer:
    """Adds up the gradients of some batches before it updates the weights."""

    def __init__(self, cfg: Config, strategy):
        self.cfg, self.strategy = cfg, strategy
        with strategy.scope():
            self.net = SetNet(cfg)
            self.net(tf.zeros((1, cfg.points, 3)))
            self.weights = self.net.trainable_variables
            self.optimizer = keras.optimizers.SGD(cfg.rate, momentum=cfg.momentum)
            self.optimizer.build(self.weights)
            self.sums = [
                tf.Variable(tf.zeros(w.shape), trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
                for w in self.weights
            ]
        self.step = tf.Variable(0, dtype=tf.int64)
        self.loss = tf.Variable(0.0)
        checkpoint = tf.train.Checkpoint(
            net=self.net, optimizer=self.optimizer, sums=self.sums, step=self.step, loss=self.loss
        )
        self.manager = tf.train.CheckpointManager(checkpoint, cfg.folder, max_to_keep=2)
        path = self.manager.restore_or_initialize()
        if path:
            print("restored", path)

    def losses(self, cloud, kind):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(kind, self.net(cloud))

    def gather(self, cloud, kind):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.losses(cloud, kind), global_batch_size=self.cfg.batch)
        gradients = tape.gradient(loss, self.weights)
        context = tf.distribute.get_replica_context()
        for total, gradient in zip(self.sums, context.all_reduce("SUM", gradients)):
            total.assign_add(gradient / self.cfg.gather)
        return loss

    def update(self):
        replicas = self.strategy.num_replicas_in_sync
        self.optimizer.apply_gradients([(s / replicas, w) for s, w in zip(self.sums, self.weights)])
        for total in self.sums:
            total.assign(tf.zeros_like(total))

    @tf.function
    def gather_step(self, cloud, kind):
        return self.strategy.reduce("SUM", self.strategy.run(self.gather, args=(cloud, kind)), axis=None)

    @tf.function
    def update_step(self):
        self.strategy.run(self.update)

    def train(self, table):
        stream = Stream(self.cfg, table, begin=int(self.step))
        data = self.strategy.distribute_datasets_from_function(stream.dataset)
        for cloud, kind in data:
            loss = self.gather_step(cloud, kind)
            step = int(self.step) + 1
            if step % self.cfg.gather == 0:
                self.update_step()
            self.step.assign(step)
            self.loss.assign(0.9 * self.loss + 0.1 * loss)
            if step % self.cfg.save_every == 0:
                print(f"batch {step} of {self.cfg.steps}: loss {float(self.loss):.5f}")
                self.manager.save(checkpoint_number=step)

    def score(self, table):
        logits = self.net(table[0]).numpy()
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(table[1], logits)
        return float(np.mean(losses)), float(np.mean(logits.argmax(-1) == table[1]))
