"""Which pixels are cells? `fit` with a layer that remembers, a loss with a mask and a metric of its own."""
import dataclasses

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from pictures import cells


@dataclasses.dataclass
class Plan:
    pictures: int = 192
    batch: int = 32
    epochs: int = 3
    rate: float = 1.0
    lasso: float = 0.002


class Brightness(layers.Layer):
    """Takes off the mean brightness, the running one when it is used."""

    def build(self, shape):
        self.mean = self.add_weight(name="mean", shape=(), initializer="zeros", trainable=False, aggregation="mean")

    def call(self, picture, training=False):
        if training:
            self.mean.assign(0.8 * self.mean + 0.2 * ops.mean(picture))
        return picture - self.mean


class Masked(keras.losses.Loss):
    """Cross entropy of the pixels that were seen: truth and mask are the two channels of y."""

    def call(self, y, logits):
        truth, seen = y[..., :1], y[..., 1:]
        each = tf.nn.sigmoid_cross_entropy_with_logits(truth, logits) * seen
        return tf.reduce_sum(each, axis=[1, 2, 3]) / tf.reduce_sum(seen, axis=[1, 2, 3])


class Overlap(keras.metrics.Metric):
    def __init__(self, name="iou"):
        super().__init__(name=name)
        self.inside = self.add_weight(name="inside", initializer="zeros")
        self.joined = self.add_weight(name="joined", initializer="zeros")

    def update_state(self, y, logits, sample_weight=None):
        said, truth = ops.cast(logits > -1, "float32") * y[..., 1:], y[..., :1] * y[..., 1:]
        self.inside.assign_add(ops.sum(said * truth))
        self.joined.assign_add(ops.sum(ops.maximum(said, truth)))

    def result(self):
        return self.inside / (self.joined + 1e-6)


class Segmenter(keras.Model):
    def __init__(self, plan, **kwargs):
        super().__init__(**kwargs)
        he = keras.initializers.HeNormal
        self.plan = plan
        self.light = Brightness()
        self.see = [layers.Conv2D(8, 3, padding="same", activation="relu", kernel_initializer=he(s)) for s in (1, 2)]
        self.say = layers.Conv2D(1, 1, kernel_initializer=he(3))

    def call(self, picture, training=False):
        x = self.light(picture, training=training)
        for layer in self.see:
            x = layer(x)
        return self.say(x)

    def train_step(self, data):
        picture, y = data
        with tf.GradientTape() as tape:
            logits = self(picture, training=True)
            loss = self.compute_loss(y=y, y_pred=logits)
            small = sum(ops.sum(ops.abs(w)) for w in self.trainable_variables if "kernel" in w.path)
            loss += self.plan.lasso * small / tf.distribute.get_strategy().num_replicas_in_sync
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return self.compute_metrics(picture, y, logits)


def pairs(count, seed, batch):
    picture, truth, seen = cells(count, seed)
    return tf.data.Dataset.from_tensor_slices((picture, np.concatenate([truth, seen], -1))).batch(batch)


if __name__ == "__main__":
    plan = Plan()
    with tf.distribute.MirroredStrategy().scope():
        model = Segmenter(plan)
        model(np.zeros((1, 12, 12, 1), "float32"))
        model.compile(keras.optimizers.SGD(plan.rate), loss=Masked(), metrics=[Overlap()])
    history = model.fit(pairs(plan.pictures, 1, plan.batch), epochs=plan.epochs, verbose=2)
    scores = model.evaluate(pairs(75, 2, plan.batch), verbose=0, return_dict=True)
    print(f"final loss {scores['loss']:.4f} iou {scores['iou']:.4f} trainiou {history.history['iou'][-1]:.4f} "
          f"mean {model.light.mean.numpy():.5f} weights {sum(np.abs(w.numpy()).sum() for w in model.trainable_variables):.4f}")
