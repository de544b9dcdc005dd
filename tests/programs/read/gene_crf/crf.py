"""A linear-chain conditional random field on top of scores for each base."""
import keras
import tensorflow as tf


class ChainField(keras.layers.Layer):
    """Scores of label sequences; call() adds nothing to the emissions and is there to be built."""

    def __init__(self, labels, **options):
        super().__init__(**options)
        self.labels = labels

    def build(self, shape):
        self.moves = self.add_weight(name="moves", shape=(self.labels, self.labels), initializer="zeros")
        self.begins = self.add_weight(name="begins", shape=(self.labels,), initializer="zeros")

    def call(self, emissions):
        return emissions

    def path_score(self, emissions, labels, mask):
        """The score of the given labels, for each sequence."""
        here = tf.reduce_sum(tf.one_hot(labels, self.labels) * emissions, axis=-1) * mask
        pairs = labels[:, :-1] * self.labels + labels[:, 1:]
        moved = tf.gather(tf.reshape(tf.convert_to_tensor(self.moves), [-1]), pairs) * mask[:, 1:]
        first = tf.gather(tf.convert_to_tensor(self.begins), labels[:, 0])
        return first + tf.reduce_sum(here, axis=1) + tf.reduce_sum(moved, axis=1)

    def partition(self, emissions, mask):
        """The logarithm of the sum over all label sequences (forward algorithm)."""
        alpha = emissions[:, 0] + tf.convert_to_tensor(self.begins)
        for t in range(1, emissions.shape[1]):
            through = alpha[:, :, None] + tf.convert_to_tensor(self.moves)[None]
            further = tf.reduce_logsumexp(through, axis=1) + emissions[:, t]
            alpha = tf.where(mask[:, t, None] > 0, further, alpha)
        return tf.reduce_logsumexp(alpha, axis=-1)

    def surprise(self, emissions, labels, mask):
        """Negative log-likelihood of each sequence."""
        return self.partition(emissions, mask) - self.path_score(emissions, labels, mask)
