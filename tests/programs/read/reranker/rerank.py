"""Listwise re-ranking with self-attention over the candidates of an impression.

    python rerank.py --steps=24 --batch_size=48
"""
import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags, logging
from keras import layers

import impressions

FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 24, "updates")
flags.DEFINE_integer("report_every", 8, "updates between two reports")
flags.DEFINE_integer("batch_size", 48, "impressions in an update, over all devices")
flags.DEFINE_float("learning_rate", 0.3, "of SGD with momentum")
flags.DEFINE_float("clip", 0.25, "largest norm of the gradient of the global batch")


class Scorer(keras.Model):
    def __init__(self, width=16, heads=2):
        super().__init__()
        init = keras.initializers.GlorotUniform
        self.embed = layers.Dense(width, kernel_initializer=init(seed=1))
        self.attend = layers.MultiHeadAttention(heads, width // heads, kernel_initializer=init(seed=2))
        self.norm = layers.LayerNormalization()
        self.mix = layers.Dense(width, activation="relu", kernel_initializer=init(seed=3))
        self.score = layers.Dense(1, use_bias=False, kernel_initializer=init(seed=4))

    def call(self, candidates):
        x = self.embed(candidates)
        x = self.norm(x + self.attend(x, x))
        return tf.squeeze(self.score(x + self.mix(x)), axis=-1)


def listwise(grade, score):
    """Cross entropy between the softmax of grades and of scores, one value for each impression."""
    return tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(grade), score)


def ndcg(grade, score):
    discount = 1.0 / tf.math.log(tf.range(2.0, impressions.LIST + 2.0))

    def gain(order):
        return tf.reduce_sum((2.0 ** tf.gather(grade, order, batch_dims=1) - 1.0) * discount, axis=1)

    return gain(tf.argsort(score, direction="DESCENDING", stable=True)) / gain(tf.argsort(grade, direction="DESCENDING", stable=True))


class Trainer:
    def __init__(self, strategy, batch_size, learning_rate, clip):
        self.strategy, self.batch_size, self.clip = strategy, batch_size, clip
        with strategy.scope():
            self.model = Scorer()
            self.model(tf.zeros((1, impressions.LIST, impressions.FEATURES)))
            self.optimizer = keras.optimizers.SGD(learning_rate, momentum=0.8)
            self.optimizer.build(self.model.trainable_variables)
            self.quality = keras.metrics.Mean(name="ndcg")

    def _clipped(self, gradients):
        """Clips the gradient of the global batch; the optimizer adds up what the replicas hand in."""
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip)
        return [g / context.num_replicas_in_sync for g in gradients], norm

    def _update(self, candidates, grade):
        with tf.GradientTape() as tape:
            each = listwise(grade, self.model(candidates, training=True))
            loss = tf.math.divide(tf.reduce_sum(each), self.batch_size)
        gradients, _ = self._clipped(tape.gradient(loss, self.model.trainable_variables))
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def _judge(self, candidates, grade):
        self.quality.update_state(ndcg(grade, self.model(candidates, training=False)))

    @tf.function
    def update(self, candidates, grade):
        losses = self.strategy.run(self._update, args=(candidates, grade))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def judge(self, candidates, grade):
        self.strategy.run(self._judge, args=(candidates, grade))

    def evaluate(self, data):
        self.quality.reset_state()
        for candidates, grade in self.strategy.experimental_distribute_dataset(data):
            self.judge(candidates, grade)
        return float(self.quality.result())


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    strategy = tf.distribute.MirroredStrategy()
    batch_size = FLAGS.batch_size
    trainer = Trainer(strategy, batch_size, FLAGS.learning_rate, FLAGS.clip)
    x, grade = impressions.draw(384, seed=1)
    test = impressions.evaluation_input(*impressions.draw(101, seed=2), batch_size)
    batches = iter(strategy.distribute_datasets_from_function(impressions.training_input(x, grade, batch_size, seed=5)))
    recent = []
    for step in range(1, FLAGS.steps + 1):
        recent.append(float(trainer.update(*next(batches))))
        if step % FLAGS.report_every == 0 or step == FLAGS.steps:
            quality = trainer.evaluate(test)
            print(f"{os.path.basename(__file__)} step {step}: loss {np.mean(recent):.5f} ndcg {quality:.5f}")
            recent = recent[-1:]
    size = sum(float(np.square(w).sum()) for w in trainer.model.get_weights())
    print(f"final loss {recent[-1]:.6f} ndcg {quality:.6f} squares {size:.5f}")


if __name__ == "__main__":
    app.run(main)
