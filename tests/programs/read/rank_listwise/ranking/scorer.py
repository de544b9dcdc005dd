"""The scorer: one text tower for title and body, and a head over both and the dense features."""
import keras
import tensorflow as tf


class TextTower(keras.layers.Layer):
    """Mean of embedded words, then a projection."""

    def __init__(self, vocabulary, width, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary, self.width = vocabulary, width
        self.embed = keras.layers.Embedding(vocabulary, width)
        self.project = keras.layers.Dense(width, activation="tanh")

    def call(self, words):
        return self.project(tf.reduce_mean(self.embed(words), axis=-2))

    def get_config(self):
        return {**super().get_config(), "vocabulary": self.vocabulary, "width": self.width}


class Scorer(keras.Model):
    clip = 0.25

    def __init__(self, vocabulary, width=12, **kwargs):
        super().__init__(**kwargs)
        self.title_tower = TextTower(vocabulary, width, name="words")
        self.body_tower = self.title_tower
        self.head = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])

    def call(self, inputs):
        title = self.title_tower(inputs["title"])
        body = self.body_tower(inputs["body"])
        return self.head(tf.concat([title, body, title * body, inputs["dense"]], axis=-1))[..., 0]

    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            scores = self(inputs, training=True)
            loss = self.compute_loss(x=inputs, y=labels, y_pred=scores)
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        variables = self.trainable_variables
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
        grads = context.all_reduce("SUM", grads)
        grads, _ = tf.clip_by_global_norm(grads, self.clip)
        self.optimizer.apply_gradients([(g / replicas, v) for g, v in zip(grads, variables)])
        logs = {}
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss * replicas)
            else:
                metric.update_state(labels, scores)
                logs.update(metric.result() if isinstance(metric.result(), dict) else {metric.name: metric.result()})
        return logs
