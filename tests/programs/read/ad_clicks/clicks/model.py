import keras
import tensorflow as tf

from .log import ADS, SITES


class ClickModel(keras.Model):
    """Factors of sites and ads, and one cross layer; the gradient of a batch is no longer than `limit`."""

    def __init__(self, units=8, limit=0.3):
        super().__init__()
        self.limit = limit
        self.site = keras.layers.Embedding(SITES, units, keras.initializers.RandomNormal(0, 0.3, seed=1))
        self.ad = keras.layers.Embedding(ADS, units, keras.initializers.RandomNormal(0, 0.3, seed=2))
        self.cross = keras.layers.Dense(2 * units + 4, kernel_initializer=keras.initializers.GlorotUniform(3))
        self.out = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(4))
        self.entropy = keras.losses.BinaryCrossentropy(from_logits=True)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.auc = keras.metrics.AUC(from_logits=True, name="auc")

    def call(self, features):
        site, ad = self.site(features["site"]), self.ad(features["ad"])
        x = tf.concat([site, ad, features["context"]], -1)
        return self.out(x * self.cross(x) + x) + tf.reduce_sum(site * ad, -1, keepdims=True)

    def report(self, clicks, logits, loss):
        # the loss of a replica is its share of the loss of the batch
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        self.loss_tracker.update_state(loss * replicas)
        self.auc.update_state(clicks, logits)
        return {each.name: each.result() for each in (self.loss_tracker, self.auc)}

    def train_step(self, batch):
        features, clicks = batch
        with tf.GradientTape() as tape:
            logits = self(features, training=True)
            loss = self.entropy(clicks[:, None], logits)
        self.update(tape.gradient(loss, self.trainable_variables))
        return self.report(clicks[:, None], logits, loss)

    def update(self, gradients):
        replica = tf.distribute.get_replica_context()
        whole = replica.all_reduce("SUM", [tf.convert_to_tensor(each) for each in gradients])
        clipped, _ = tf.clip_by_global_norm(whole, self.limit)
        share = [each / replica.num_replicas_in_sync for each in clipped]
        self.optimizer.apply_gradients(zip(share, self.trainable_variables))

    def test_step(self, batch):
        features, clicks = batch
        logits = self(features, training=False)
        return self.report(clicks[:, None], logits, self.entropy(clicks[:, None], logits))
