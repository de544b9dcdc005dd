"""Learns to sort grains: a base that knows shapes, a head on top of it, and then both together.

1. the base learns to tell bars from crosses, and its weights go to a file,
2. a head for grains learns on the frozen base,
3. both learn at a small rate,
4. pictures of another day come in, and the saved model learns them, too.
"""
import keras
import numpy as np
import tensorflow as tf
from images import SIZE, grains, shapes

BATCH = 32
BASE_FILE, MODEL_FILE = "base.weights.h5", "grains.keras"


def make_base(filters=8):
    draw = lambda seed: keras.initializers.HeNormal(seed=seed)  # noqa: E731
    inputs = keras.Input((SIZE, SIZE, 1))
    x = keras.layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False, kernel_initializer=draw(1))(inputs)
    x = keras.layers.BatchNormalization(momentum=0.8, synchronized=True)(x)
    x = keras.layers.ReLU()(x)
    x = keras.layers.Conv2D(2 * filters, 3, strides=2, padding="same", use_bias=False, kernel_initializer=draw(2))(x)
    x = keras.layers.BatchNormalization(momentum=0.8, synchronized=True)(x)
    x = keras.layers.ReLU()(x)
    return keras.Model(inputs, keras.layers.Flatten()(x), name="base")


def classifier(base, classes, seed):
    inputs = keras.Input((SIZE, SIZE, 1))
    head = keras.layers.Dense(classes, kernel_initializer=keras.initializers.GlorotUniform(seed=seed), name="head")
    return keras.Model(inputs, head(base(inputs)))


def compile_for(model, rate):
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"])


def batches(table):
    return tf.data.Dataset.from_tensor_slices(table).batch(BATCH, drop_remainder=True)


def learn(name, model, table, epochs):
    told = model.fit(batches(table), epochs=epochs, shuffle=False, verbose=0).history
    print(f"{name}: loss {told['loss'][0]:.5f} -> {told['loss'][-1]:.5f}, accuracy {told['accuracy'][-1]:.4f}")
    return told["loss"][-1]


def learn_shapes(strategy):
    with strategy.scope():
        base = make_base()
        model = classifier(base, 2, seed=5)
        compile_for(model, 0.01)
    learn("shapes", model, shapes(256, seed=1), epochs=3)
    base.save_weights(BASE_FILE)


def main():
    strategy = tf.distribute.MirroredStrategy()
    learn_shapes(strategy)

    monday, tuesday, test = grains(256, seed=2), grains(128, seed=3), grains(96, seed=4)
    with strategy.scope():
        base = make_base()
        base.load_weights(BASE_FILE)
        model = classifier(base, 3, seed=6)
        base.trainable = False
        compile_for(model, 0.01)
    frozen = learn("head", model, monday, epochs=2)

    base.trainable = True
    with strategy.scope():
        compile_for(model, 0.002)
    both = learn("head and base", model, monday, epochs=3)
    model.save(MODEL_FILE)

    with strategy.scope():
        sorter = keras.models.load_model(MODEL_FILE)
    later = learn("another day", sorter, tuesday, epochs=2)

    loss, accuracy = sorter.evaluate(batches(test), verbose=0)
    moved = sum(float(np.abs(w.numpy()).sum()) for w in sorter.get_layer("base").weights)
    print(f"losses {frozen:.5f} {both:.5f} {later:.5f} test {loss:.5f} accuracy {accuracy:.4f} base {moved:.3f}")


if __name__ == "__main__":
    main()
