"""Two tasks on the same machine readings: remaining life (regression) and kind of wear (three classes)."""
import keras
import numpy as np
import tensorflow as tf
from keras import ops


def readings(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 14)).astype("float32")
    hidden = np.tanh(x[:, :3] @ np.array([[1.0, -0.6], [0.7, 0.9], [-1.1, 0.4]]))
    life = (2.0 * hidden[:, 0] - hidden[:, 1] + 0.4 * rng.normal(size=rows)).astype("float32")[:, None]
    kind = np.digitize(hidden[:, 0] + hidden[:, 1] + 0.4 * rng.normal(size=rows), (-0.5, 0.5)).astype("int32")
    return x, {"life": life, "kind": kind}


def epochs_of(x, y, batch, first, last, seed=30):
    """The batches of the epochs first .. last - 1 in one dataset; every epoch has its own order."""
    rows = len(x)
    data = (tf.constant(x), {k: tf.constant(v) for k, v in y.items()})

    def one(epoch):
        order = tf.random.experimental.stateless_shuffle(tf.range(rows), seed=tf.stack([seed, epoch]))
        shuffled = tf.nest.map_structure(lambda t: tf.gather(t, order), data)
        return tf.data.Dataset.from_tensor_slices(shuffled).batch(batch, drop_remainder=True)

    return tf.data.Dataset.range(first, last).map(lambda e: tf.cast(e, tf.int32)).flat_map(one)


@keras.saving.register_keras_serializable("wear")
def log_cosh_of_life(y_true, y_pred):
    error = y_pred - y_true
    return ops.mean(error + ops.softplus(-2.0 * error) - ops.log(2.0), axis=-1)


@keras.saving.register_keras_serializable("wear")
class ExplainedShare(keras.metrics.Metric):
    """1 - residual sum of squares / total sum of squares, over all examples seen."""

    def __init__(self, name="explained", **kwargs):
        super().__init__(name=name, **kwargs)
        self.count, self.total, self.squares, self.residual = (
            self.add_weight(name=n, initializer="zeros") for n in ("count", "total", "squares", "residual"))

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = ops.reshape(y_true, (-1,)), ops.reshape(y_pred, (-1,))
        self.count.assign_add(ops.sum(ops.ones_like(y_true)))
        self.total.assign_add(ops.sum(y_true))
        self.squares.assign_add(ops.sum(ops.square(y_true)))
        self.residual.assign_add(ops.sum(ops.square(y_true - y_pred)))

    def result(self):
        spread = self.squares - ops.square(self.total) / ops.maximum(self.count, 1.0)
        return 1.0 - self.residual / ops.maximum(spread, 1e-6)


def explained(y_true, y_pred):
    spread = ops.sum(ops.square(y_true - ops.mean(y_true)))
    return 1.0 - ops.sum(ops.square(y_true - y_pred)) / spread


def build():
    glorot = keras.initializers.GlorotUniform
    trunk = keras.Sequential([keras.Input((14,)), keras.layers.Dense(24, activation="relu", kernel_initializer=glorot(seed=1)),
                              keras.layers.Dense(12, activation="relu", kernel_initializer=glorot(seed=2))], name="trunk")
    inputs = keras.Input((14,))
    shared = trunk(inputs)
    life = keras.layers.Dense(1, kernel_initializer=glorot(seed=3), name="life")(shared)
    kind = keras.layers.Dense(3, kernel_initializer=glorot(seed=4), name="kind")(shared)
    return keras.Model(inputs, {"life": life, "kind": kind})


def compile_model(model, lr):
    model.compile(
        optimizer=keras.optimizers.SGD(lr, momentum=0.9),
        loss={"life": log_cosh_of_life, "kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
        loss_weights={"life": 1.0, "kind": 0.5},
        metrics={"life": [ExplainedShare()]})
