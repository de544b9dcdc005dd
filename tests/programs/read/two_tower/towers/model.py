import keras
import tensorflow as tf


def _glorot(seed):
    return keras.initializers.GlorotUniform(seed=seed)


class TwoTower(keras.Model):
    def __init__(self, articles, topic_of, topics, dim=16):
        super().__init__()
        self.topic_of = tf.constant(topic_of)
        self.article = keras.layers.Embedding(articles, dim, embeddings_initializer=keras.initializers.RandomNormal(0, 0.3, seed=1))
        self.read = self.article
        self.topic = keras.layers.Embedding(topics, dim, embeddings_initializer=keras.initializers.RandomNormal(0, 0.3, seed=2))
        self.user_net = keras.Sequential([keras.layers.Dense(24, activation="relu", kernel_initializer=_glorot(3)),
                                          keras.layers.Dense(dim, kernel_initializer=_glorot(4))])
        self.item_net = keras.Sequential([keras.layers.Dense(24, activation="relu", kernel_initializer=_glorot(5)),
                                          keras.layers.Dense(dim, kernel_initializer=_glorot(6))])

    def users(self, history):
        return tf.math.l2_normalize(self.user_net(tf.reduce_mean(self.read(history), axis=1)), axis=-1)

    def items(self, ids):
        both = tf.concat([self.article(ids), self.topic(tf.gather(self.topic_of, ids))], axis=-1)
        return tf.math.l2_normalize(self.item_net(both), axis=-1)

    def call(self, inputs):
        history, ids = inputs
        return self.users(history), self.items(ids)


def in_batch_softmax(users, items, ids, log_frequency, temperature):
    """Cross entropy of each user's article against all articles of the global batch, one value a user."""
    context = tf.distribute.get_replica_context()
    rows = tf.shape(users)[0]
    pool, pool_ids = context.all_gather(items, axis=0), context.all_gather(ids, axis=0)
    own = context.replica_id_in_sync_group * rows + tf.range(rows)
    logits = tf.matmul(users, pool, transpose_b=True) / temperature - tf.gather(log_frequency, pool_ids)[None]
    same = tf.equal(ids[:, None], pool_ids[None]) & tf.not_equal(own[:, None], tf.range(tf.shape(pool)[0])[None])
    logits = tf.where(same, -1e9, logits)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(own, logits)
