"""Shared encoder with one head for the intent, one for the slots and one for the domain."""
import keras
import tensorflow as tf
from keras import layers


class JointNetwork(keras.Model):

    def __init__(self, data, model, **kwargs):
        super().__init__(**kwargs)
        self.table = layers.Embedding(data.vocab, model.width)
        self.encoder = layers.GRU(model.units, return_sequences=True)
        self.intent_head = layers.Dense(data.intents)
        self.slot_head = layers.Dense(data.slots)
        # used when commands of several domains are mixed; there is one domain for now
        self.domain_head = layers.Dense(2)

    def call(self, ids):
        keep = tf.cast(ids > 0, tf.float32)[..., None]
        states = self.encoder(self.table(ids) * keep)
        summary = tf.reduce_sum(states * keep, 1) / tf.reduce_sum(keep, 1)
        return self.intent_head(summary), self.slot_head(states), self.domain_head(summary)
