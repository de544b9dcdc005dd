"""Soil moisture of a field from a probe, the weather and the kind of soil (clay, loam, sand).

Trains, keeps the model in soil.keras, and reports what the kept model says of next year's fields.
"""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

KINDS = ["clay", "loam", "sand"]
BATCH = 48


@keras.saving.register_keras_serializable("soil")
class Saturation(layers.Layer):
    """A soft upper limit: x below it, and never more than `ceiling`; how fast it bends is learned."""

    def __init__(self, ceiling=1.0, **kwargs):
        super().__init__(**kwargs)
        self.ceiling = ceiling

    def build(self, input_shape):
        self.bend = self.add_weight(shape=(), initializer=keras.initializers.Constant(3.0), name="bend")

    def call(self, x):
        return self.ceiling - tf.nn.softplus(self.bend * (self.ceiling - x)) / self.bend

    def get_config(self):
        return {**super().get_config(), "ceiling": self.ceiling}


def within_tolerance(truth, predicted):
    """Share of the fields whose moisture is met within a tenth of a unit."""
    return tf.cast(tf.abs(truth - predicted) < 0.1, tf.float32)


def fields(n, seed):
    rng = np.random.default_rng(seed)
    probe = rng.normal(size=(n, 3)).astype("float32")
    weather = rng.normal(size=(n, 4)).astype("float32")
    kind = rng.integers(0, 3, n)
    holds = np.array([1.6, 1.2, 0.7])[kind]
    water = 0.5 + 0.5 * probe[:, 0] + 0.3 * weather[:, 1] - 0.2 * weather[:, 2] * probe[:, 1]
    moisture = np.minimum(water, holds) + 0.05 * rng.normal(size=n)
    inputs = {"probe": probe, "weather": weather, "kind": kind.astype("int32")}
    order = np.argsort(moisture)  # sorted from dry to wet, as the agency delivers them
    return {k: v[order] for k, v in inputs.items()}, moisture[order, None].astype("float32")


def make_model():
    probe = keras.Input((3,), name="probe")
    weather = keras.Input((4,), name="weather")
    kind = keras.Input((), dtype="int32", name="kind")
    soil = layers.Embedding(len(KINDS), 4)(kind)
    x = layers.Concatenate()([probe, weather, soil])
    x = layers.Dense(16, activation="gelu")(x)
    x = layers.Dense(1)(x)
    moisture = Saturation(ceiling=1.6, name="moisture")(x)
    return keras.Model({"probe": probe, "weather": weather, "kind": kind}, moisture)


def dataset(table, shuffled=False):
    data = tf.data.Dataset.from_tensor_slices(table)
    if shuffled:
        data = data.shuffle(len(table[1]), seed=12)
    return data.batch(BATCH)


keras.utils.set_random_seed(12)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make_model()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.8), loss="mse", metrics=[within_tolerance])

train, test = dataset(fields(480, 1), shuffled=True), dataset(fields(192, 2))
history = model.fit(train, epochs=5, validation_data=test, verbose=0).history
for epoch, (loss, other) in enumerate(zip(history["loss"], history["val_loss"]), 1):
    print(f"epoch {epoch}: loss {loss:.4f}, next year {other:.4f}")
model.save("soil.keras")

with strategy.scope():
    kept = keras.models.load_model("soil.keras", custom_objects={"within_tolerance": within_tolerance})
error, met = kept.evaluate(test, verbose=0)
print(f"kept model: error {error:.5f}, {100 * met:.2f} % of the fields met, bend {float(kept.get_layer('moisture').bend.numpy()):.4f}")
