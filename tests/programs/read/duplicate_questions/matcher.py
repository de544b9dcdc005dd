"""Siamese matcher with a balanced contrastive loss."""
import keras
import tensorflow as tf

from pairs import LENGTH, VOCAB


def make_encoder(dim):
    return keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            keras.layers.Embedding(VOCAB, dim),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(dim, activation="tanh"),
        ],
        name="encoder",
    )


class Warmup:
    """Grows from 0 to 1 in the first `steps` updates."""

    def __init__(self, steps):
        self.steps = steps
        self.done = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    def advance(self):
        self.done.assign_add(1.0)

    def value(self):
        return tf.minimum(1.0, tf.convert_to_tensor(self.done) / self.steps)


class F1(keras.metrics.Metric):
    def __init__(self, name="f1", **kwargs):
        super().__init__(name=name, **kwargs)
        self.both, self.said, self.true = (
            self.add_weight(name=n, initializer="zeros") for n in ("both", "said", "true")
        )

    def update_state(self, same, logit, sample_weight=None):
        said = tf.cast(logit > 0, tf.float32)
        self.both.assign_add(tf.reduce_sum(said * same))
        self.said.assign_add(tf.reduce_sum(said))
        self.true.assign_add(tf.reduce_sum(same))

    def result(self):
        return 2.0 * self.both / tf.maximum(self.said + self.true, 1.0)


def all_replicas(value):
    return tf.distribute.get_replica_context().all_reduce("SUM", value)


class Matcher(keras.Model):
    def __init__(self, dim, warmup, margin=0.8):
        super().__init__(name="matcher")
        self.left = make_encoder(dim)
        self.right = self.left
        self.scale = keras.layers.Dense(1)
        self.warmup, self.margin = warmup, margin
        self.loss_mean = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_mean] + [m for m in super().metrics if m.name != "loss"]

    def distance(self, questions):
        left = tf.math.l2_normalize(self.left(questions["a"]), axis=-1)
        right = tf.math.l2_normalize(self.right(questions["b"]), axis=-1)
        return tf.reduce_sum(tf.square(left - right), axis=-1)

    def logit(self, distance):
        return self.scale(distance[:, None])[:, 0]

    def call(self, questions):
        return self.logit(self.distance(questions))

    def balanced(self, values, same):
        """Duplicates and the others weigh the same, whatever their share of the batch."""
        others = 1.0 - same
        return 0.5 * (
            tf.reduce_sum(values * same) / tf.maximum(all_replicas(tf.reduce_sum(same)), 1.0)
            + tf.reduce_sum(values * others) / tf.maximum(all_replicas(tf.reduce_sum(others)), 1.0)
        )

    def share_of_loss(self, same, distance, logit):
        margin = self.margin * self.warmup.value()
        contrast = same * distance + (1.0 - same) * tf.nn.relu(margin - distance)
        cross = tf.nn.sigmoid_cross_entropy_with_logits(same, logit)
        return self.balanced(contrast + cross, same)

    def train_step(self, data):
        questions, same = data
        with tf.GradientTape() as tape:
            distance = self.distance(questions)
            logit = self.logit(distance)
            loss = self.share_of_loss(same, distance, logit)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self.warmup.advance()
        return self._report(same, logit, loss)

    def test_step(self, data):
        questions, same = data
        distance = self.distance(questions)
        logit = self.logit(distance)
        return self._report(same, logit, self.share_of_loss(same, distance, logit))

    def _report(self, same, logit, loss):
        self.loss_mean.update_state(all_replicas(loss))
        return {"loss": self.loss_mean.result(), **self.compute_metrics(None, same, logit)}
