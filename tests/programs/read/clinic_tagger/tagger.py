"""The tagger: embedding, two convolutions over neighbouring words, one softmax per word.

Padding (word 0) counts neither in the loss nor in the metrics. The classes are weighted by a running
estimate of how often each tag occurs.
"""
import keras
import tensorflow as tf


def over_replicas(value):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


class Tagger(keras.Model):
    def __init__(self, cfg):
        super().__init__(name="tagger")
        self.cfg = cfg
        self.embed = keras.layers.Embedding(cfg.vocab, cfg.dim)
        self.near = keras.layers.Conv1D(cfg.units, 3, padding="same", activation="tanh")
        self.wide = keras.layers.Conv1D(cfg.units, 3, padding="same", activation="tanh")
        self.head = keras.layers.Dense(cfg.tags)
        self.prior = self.add_weight(
            name="prior", shape=(cfg.tags,), initializer=keras.initializers.Constant(1.0 / cfg.tags),
            trainable=False, aggregation="mean",
        )
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.hits = keras.metrics.Mean(name="word_accuracy")

    @property
    def metrics(self):
        return [self.loss_mean, self.hits]

    def call(self, words):
        real = tf.cast(words != 0, tf.float32)[..., None]
        x = self.embed(words) * real
        x = self.near(x) * real
        return self.head(self.wide(x) * real + x)

    def _parts(self, words, tags, logits):
        """Sums over this replica: weighted loss, real words, correct words."""
        real = tf.cast(words != 0, tf.float32)
        weight = 1.0 / (0.2 + tf.gather(tf.convert_to_tensor(self.prior), tags))
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits)
        correct = tf.cast(tf.argmax(logits, -1, output_type=tf.int32) == tags, tf.float32)
        return tf.reduce_sum(nll * weight * real), tf.reduce_sum(real), tf.reduce_sum(correct * real)

    def _record(self, loss_sum, words, correct):
        self.loss_mean.update_state(loss_sum / words, sample_weight=words)
        self.hits.update_state(correct / words, sample_weight=words)

    def _update_prior(self, words, tags):
        real = tf.cast(words != 0, tf.float32)
        seen = tf.reduce_sum(tf.one_hot(tags, self.cfg.tags) * real[..., None], axis=(0, 1))
        seen = over_replicas(seen)
        share = seen / tf.reduce_sum(seen)
        keep = self.cfg.prior_decay
        self.prior.assign(keep * tf.convert_to_tensor(self.prior) + (1.0 - keep) * share)

    def train_step(self, data):
        words, tags = data
        with tf.GradientTape() as tape:
            logits = self(words, training=True)
            loss_sum, count, correct = self._parts(words, tags, logits)
            loss = loss_sum / over_replicas(count)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self._update_prior(words, tags)
        self._record(loss_sum, count, correct)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        words, tags = data
        self._record(*self._parts(words, tags, self(words, training=False)))
        return {m.name: m.result() for m in self.metrics}
