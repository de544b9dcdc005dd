import tensorflow as tf
from tensorflow import keras

USERS, ITEMS, HISTORY, WIDTH = 80, 50, 6, 16


class QueryTower(keras.Model):
    """A user: an embedding of its own and the mean of the items in the history."""

    def __init__(self, item_embedding):
        super().__init__()
        self.users = keras.layers.Embedding(USERS, WIDTH)
        self.items = item_embedding
        self.project = keras.layers.Dense(WIDTH)

    def call(self, inputs):
        user, history = inputs
        mean = tf.reduce_mean(self.items(history), axis=1)
        return tf.math.l2_normalize(self.project(tf.concat([self.users(user), mean], -1)), -1)


class ItemTower(keras.Model):
    def __init__(self, item_embedding):
        super().__init__()
        self.items = item_embedding
        self.project = keras.layers.Dense(WIDTH)

    def call(self, item):
        return tf.math.l2_normalize(self.project(self.items(item)), -1)


class TwoTowers(keras.Model):
    def __init__(self):
        super().__init__()
        items = keras.layers.Embedding(ITEMS, WIDTH)
        self.query, self.item = QueryTower(items), ItemTower(items)

    def call(self, inputs):
        user, history, item = inputs
        return self.query((user, history)), self.item(item)
