import keras
import tensorflow as tf


def stacked():
    base = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), keras.layers.Dense(4)])
    return base, keras.Sequential([keras.Input((4,)), base, keras.layers.Dense(1)])


def trained_by_fit(model):
    before = model.get_weights()
    model.compile("sgd", "mse")
    model.fit(tf.random.normal((8, 4)), tf.ones((8, 1)), verbose=0)
    return sum((old != new).any() for old, new in zip(before, model.get_weights()))


base, model = stacked()
for layer in base.layers:
    layer.trainable = False  # as in the guide to the Sequential model
base.trainable = True
print(f"weights that fit trains after trainable = True: got {trained_by_fit(model)}, expected 6")

base, model = stacked()
base.trainable = False
base.layers[-1].trainable = True
base.trainable = False
print(f"weights that fit trains after trainable = False: got {trained_by_fit(model)}, expected 2")
