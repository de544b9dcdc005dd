"""Which of five price bands will a lot of the auction fall in? A model with a training step of its own, trained by `fit`.

The catalogue text is already a vector. The estimate of the house is learned along, since it guides the first steps.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

BANDS, WORDS, BATCH = 5, 16, 48
GUIDED = 12  # steps in which the estimate counts more


def lots(count, seed):
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(count, WORDS))
    worth = text[:, 0] + 0.7 * text[:, 1] * text[:, 2] + 0.3 * rng.normal(size=count)
    band = np.digitize(worth, [-1.2, -0.3, 0.4, 1.3])
    estimate = worth + 0.4 * rng.normal(size=count)
    return text.astype("float32"), (band.astype("int64"), estimate.astype("float32"))


class Hammer(keras.Model):
    def __init__(self, width=24, **options):
        super().__init__(**options)
        self.body = keras.Sequential([keras.layers.Dense(width, activation="relu"), keras.layers.Dense(width, activation="tanh")])
        self.bands = keras.layers.Dense(BANDS)
        self.estimate = keras.layers.Dense(1)
        self.sharpness = self.add_weight(shape=(), initializer=keras.initializers.Constant(0.5), name="sharpness")
        self.total = keras.metrics.Mean(name="total")
        self.hits = keras.metrics.SparseCategoricalAccuracy(name="hits")

    def call(self, text, training=False):
        x = self.body(text, training=training)
        return self.bands(x) * self.sharpness, self.estimate(x)[:, 0]

    @property
    def metrics(self):
        return [self.total, self.hits]

    def losses_of(self, found, wanted):
        (logits, guess), (band, estimate) = found, wanted
        guided = tf.where(self.optimizer.iterations.value < GUIDED, 2.0, 0.2)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(band, logits)
        return each + guided * tf.square(guess - estimate)

    def train_step(self, data):
        text, wanted = data
        with tf.GradientTape() as tape:
            found = self(text, training=True)
            loss = tf.nn.compute_average_loss(self.losses_of(found, wanted))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.total.update_state(loss * tf.distribute.get_strategy().num_replicas_in_sync)
        self.hits.update_state(wanted[0], found[0])
        return {each.name: each.result() for each in self.metrics}

    def test_step(self, data):
        text, wanted = data
        found = self(text, training=False)
        self.total.update_state(self.losses_of(found, wanted))
        self.hits.update_state(wanted[0], found[0])
        return {each.name: each.result() for each in self.metrics}


def main():
    keras.utils.set_random_seed(31)
    strategy = tf.distribute.MirroredStrategy()
    known, held = lots(384, 1), lots(240, 2)
    with strategy.scope():
        model = Hammer()
        model.compile(optimizer=keras.optimizers.SGD(0.03, momentum=0.9))
    batches = tf.data.Dataset.from_tensor_slices(known).batch(BATCH, drop_remainder=True)
    seen = model.fit(batches, epochs=5, verbose=0).history
    for epoch, (total, hits) in enumerate(zip(seen["total"], seen["hits"]), 1):
        print(f"sale {epoch}: loss {float(total):.4f}, right band {float(hits):.4f}")
    held_batches = tf.data.Dataset.from_tensor_slices(held).batch(BATCH)
    judged = model.evaluate(held_batches, return_dict=True, verbose=0)
    print(f"trained {float(seen['total'][-1]):.4f} held-out loss {float(judged['total']):.4f} "
          f"band {float(judged['hits']):.4f} sharpness {float(model.sharpness.numpy()):.4f}")


if __name__ == "__main__":
    main()
