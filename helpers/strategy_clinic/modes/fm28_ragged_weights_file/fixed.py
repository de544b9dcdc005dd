import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10)])


with strategy.scope():
    model = make_model()
    other = make_model()
np.savez("weights.npz", *model.get_weights())  # fixed: several arrays in one file
with np.load("weights.npz") as arrays:  # fixed
    weights = [arrays[name] for name in arrays.files]  # fixed
other.set_weights(weights)
print("the same weights:", all(map(np.array_equal, other.get_weights(), model.get_weights())))
