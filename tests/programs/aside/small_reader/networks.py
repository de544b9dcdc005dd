"""The large reader and the small one, which learns from it."""
import keras
import tensorflow as tf

SIGNS, LENGTH, KINDS = 30, 10, 4


def _draw(seed):
    return keras.initializers.GlorotUniform(seed=seed)


class Teacher(keras.Model):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = keras.layers.Embedding(SIGNS, width, keras.initializers.RandomNormal(0, 0.5, seed=1))
        self.near = keras.layers.Conv1D(width, 3, activation="relu", kernel_initializer=_draw(2))
        self.far = keras.layers.Conv1D(width, 3, dilation_rate=2, activation="relu", kernel_initializer=_draw(3))
        self.head = keras.layers.Dense(KINDS, kernel_initializer=_draw(4))

    def call(self, signs):
        x = self.far(self.near(self.embedding(signs)))
        return self.head(tf.reduce_max(x, axis=1))


def make_student(width=8):
    signs = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(SIGNS, width, keras.initializers.RandomNormal(0, 0.5, seed=5))(signs)
    x = keras.layers.Conv1D(width, 3, activation="relu", kernel_initializer=_draw(6))(x)
    x = keras.layers.GlobalMaxPooling1D()(x)
    return keras.Model(signs, keras.layers.Dense(KINDS, kernel_initializer=_draw(7))(x))


class Distiller(keras.Model):
    """Trains a student on the answers of a teacher, which become sharper from step to step."""

    def __init__(self, student, teacher, hottest=4.0, cooling=0.03, share=0.8):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.teacher.trainable = False
        self.hottest, self.cooling, self.share = hottest, cooling, share
        self.steps = self.add_weight(
            name="steps", shape=(), initializer="zeros", trainable=False, aggregation="only_first_replica")
        self.answers = keras.losses.CategoricalCrossentropy(from_logits=True, reduction="none")
        self.labels = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        self.loss_of_epoch = keras.metrics.Mean(name="distilled")
        self.right = keras.metrics.SparseCategoricalAccuracy(name="right")

    @property
    def metrics(self):
        return [self.loss_of_epoch, self.right]

    def call(self, signs):
        return self.student(signs)

    def temperature(self):
        return 1.0 + (self.hottest - 1.0) * tf.exp(-self.cooling * self.steps)

    def train_step(self, batch):
        signs, kinds = batch
        heat = self.temperature()
        soft = tf.nn.softmax(self.teacher(signs, training=False) / heat)
        with tf.GradientTape() as tape:
            logits = self.student(signs, training=True)
            losses = self.share * heat**2 * self.answers(soft, logits / heat)
            losses += (1.0 - self.share) * self.labels(kinds, logits)
            loss = tf.reduce_mean(losses) / tf.distribute.get_strategy().num_replicas_in_sync
        weights = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.steps.assign_add(1.0)
        return self.told(losses, kinds, logits)

    def test_step(self, batch):
        signs, kinds = batch
        logits = self.student(signs, training=False)
        return self.told(self.labels(kinds, logits), kinds, logits)

    def told(self, losses, kinds, logits):
        self.loss_of_epoch.update_state(losses)
        self.right.update_state(kinds, logits)
        return {metric.name: metric.result() for metric in self.metrics}
