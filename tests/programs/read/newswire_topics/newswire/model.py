"""Attention-pooled bag of embeddings with its own training and test step."""
import keras
import tensorflow as tf
from keras import layers

from .data import PAD
from .metrics import MacroRecall, macro_average, recall_counts


class AttentivePooling(layers.Layer):
    """Weighted mean over the tokens that are not padding."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.score = layers.Dense(1, use_bias=False)

    def call(self, vectors, keep):
        scores = tf.squeeze(self.score(vectors), -1)
        scores += (1.0 - keep) * -1e9
        weights = tf.nn.softmax(scores, axis=-1)
        return tf.einsum("bt,btd->bd", weights, vectors)


class TopicClassifier(keras.Model):

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.topics = config.data.topics
        self.global_batch = config.batch_size
        self.penalty = config.optim.weight_penalty
        self.smoothing = config.optim.label_smoothing
        self.embed = layers.Embedding(config.data.vocab, config.width)
        self.pool = AttentivePooling()
        self.hidden = layers.Dense(config.hidden, activation="tanh")
        self.head = layers.Dense(config.data.topics)
        self.mean_loss = keras.metrics.Mean(name="loss")
        self.hit_rate = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self.macro_recall = MacroRecall(config.data.topics)

    @property
    def metrics(self):
        return [self.mean_loss, self.hit_rate, self.macro_recall]

    def call(self, tokens, training=None):
        keep = tf.cast(tf.not_equal(tokens, PAD), tf.float32)
        pooled = self.pool(self.embed(tokens), keep)
        return self.head(self.hidden(pooled))

    def item_losses(self, labels, logits):
        targets = tf.one_hot(labels, self.topics)
        targets = targets * (1 - self.smoothing) + self.smoothing / self.topics
        return tf.nn.softmax_cross_entropy_with_logits(targets, logits)

    def objective(self, losses):
        """The share of this replica in the loss of the global batch."""
        data_term = tf.nn.compute_average_loss(losses, global_batch_size=self.global_batch)
        squares = tf.add_n([tf.nn.l2_loss(layer.kernel) for layer in (self.hidden, self.head)])
        return data_term + tf.nn.scale_regularization_loss(self.penalty * squares)

    def track(self, labels, logits, losses):
        self.mean_loss.update_state(losses)
        self.hit_rate.update_state(labels, logits)
        self.macro_recall.update_state(labels, logits)
        return {metric.name: metric.result() for metric in self.metrics}

    def train_step(self, data):
        tokens, labels = data
        with tf.GradientTape() as tape:
            logits = self(tokens, training=True)
            losses = self.item_losses(labels, logits)
            loss = self.objective(losses)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.track(labels, logits, losses)

    def test_step(self, data):
        tokens, labels = data
        logits = self(tokens, training=False)
        losses = self.item_losses(labels, logits)
        return self.track(labels, logits, losses)
