"""Finding the hook of a crane again: a siamese network compares a template with a larger search window.

First only the head learns, on a backbone that is frozen; then everything is fine-tuned. The tracker is
written to hook.keras and checked as the camera will load it.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

TEMPLATE, SEARCH = 8, 16
PLACES = SEARCH - TEMPLATE + 1
BATCH = 24


@keras.saving.register_keras_serializable("crane")
class CrossCorrelation(keras.layers.Layer):
    """Slides the features of the template over those of the search window of the same pair."""

    def __init__(self, start=0.0, sharpness=1.0, **options):
        super().__init__(**options)
        self.start, self.sharpness = start, sharpness

    def build(self, shapes):
        self.bias = self.add_weight(name="bias", shape=(), initializer=keras.initializers.Constant(self.start))

    def call(self, inputs):
        template, search = inputs
        size = template.shape[1]
        windows = tf.image.extract_patches(search, [1, size, size, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
        flat = tf.reshape(template, [-1, 1, 1, size * size * template.shape[-1]])
        return self.sharpness * tf.reduce_mean(windows * flat, axis=-1) + self.bias

    def compute_output_shape(self, shapes):
        (_, size, _, _), (batch, wide, _, _) = shapes
        return (batch, wide - size + 1, wide - size + 1)

    def get_config(self):
        return {**super().get_config(), "start": self.start, "sharpness": self.sharpness}


class CenterError(keras.metrics.Metric):
    """Root of the mean squared distance between the strongest response and the hook, in pixels."""

    def __init__(self, name="rms_pixels", **options):
        super().__init__(name=name, **options)
        self.squares = self.add_weight(name="squares", initializer="zeros")
        self.pairs = self.add_weight(name="pairs", initializer="zeros")

    def update_state(self, where, response, sample_weight=None):
        distance = squared_distance(where, response)
        self.squares.assign_add(tf.reduce_sum(distance))
        self.pairs.assign_add(tf.cast(tf.size(distance), tf.float32))

    def result(self):
        return tf.sqrt(self.squares / self.pairs)


def squared_distance(where, response):
    best = tf.argmax(tf.reshape(response, [-1, PLACES * PLACES]), axis=-1)
    hook = tf.argmax(tf.reshape(where, [-1, PLACES * PLACES]), axis=-1)
    return tf.cast((best // PLACES - hook // PLACES) ** 2 + (best % PLACES - hook % PLACES) ** 2, tf.float32)


def pairs(count, seed):
    """A template with a hook, a window in which the same hook hangs, and the map of where."""
    rng = np.random.default_rng(seed)
    hooks = rng.normal(size=(count, TEMPLATE, TEMPLATE, 1))
    windows = 0.8 * rng.normal(size=(count, SEARCH, SEARCH, 1))
    where = np.zeros((count, PLACES, PLACES))
    for i, (y, x) in enumerate(rng.integers(0, PLACES, (count, 2))):
        windows[i, y : y + TEMPLATE, x : x + TEMPLATE] += hooks[i]
        where[i, y, x] = 1.0
    return hooks.astype("float32"), windows.astype("float32"), where.astype("float32")


def backbone():
    return keras.Sequential([
        keras.Input((None, None, 1)),
        keras.layers.Conv2D(6, 3, padding="same", activation="tanh"),
        keras.layers.Conv2D(8, 3, padding="same"),
    ], name="backbone")


def tracker():
    template = keras.Input((TEMPLATE, TEMPLATE, 1), name="template")
    search = keras.Input((SEARCH, SEARCH, 1), name="search")
    eye = backbone()
    mix = keras.layers.Conv2D(8, 1, name="mix")
    response = CrossCorrelation(start=-0.5, sharpness=4.0, name="response")([mix(eye(template)), mix(eye(search))])
    return keras.Model([template, search], response)


def response_loss(where, response):
    """Cross entropy over the places of a window, one value for each pair."""
    flat = [tf.reshape(each, [-1, PLACES * PLACES]) for each in (where, response)]
    return tf.nn.softmax_cross_entropy_with_logits(*flat)


def compiled(model, rate):
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss=response_loss, metrics=[CenterError()])


def main():
    keras.utils.set_random_seed(21)
    strategy = tf.distribute.MirroredStrategy()
    *seen, where = pairs(240, 1)
    *unseen, truth = pairs(96, 2)
    with strategy.scope():
        model = tracker()
        model.get_layer("backbone").trainable = False
        compiled(model, 0.05)
    first = model.fit(seen, where, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    print(f"head: loss {first.history['loss'][-1]:.4f}")
    with strategy.scope():
        model.get_layer("backbone").trainable = True
        compiled(model, 0.02)
    second = model.fit(seen, where, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    print(f"all: loss {second.history['loss'][-1]:.4f}, errors {second.history['rms_pixels'][-1]:.4f} pixels")
    model.save("hook.keras")
    with strategy.scope():
        camera = keras.models.load_model("hook.keras", custom_objects={
            "response_loss": response_loss, "CenterError": CenterError})
    told = camera.evaluate(unseen, truth, batch_size=BATCH, verbose=0, return_dict=True)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in camera.trainable_variables)
    print(f"camera: loss {told['loss']:.4f} errors {told['rms_pixels']:.4f} pixels, weights {size:.4f}")


if __name__ == "__main__":
    main()
