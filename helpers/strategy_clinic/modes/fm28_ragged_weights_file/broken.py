import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10)])


with strategy.scope():
    model = make_model()
    other = make_model()
np.save("weights.npy", model.get_weights())  # wrong: one array of two shapes
weights = np.load("weights.npy")  # wrong
other.set_weights(weights)
print("the same weights:", all(map(np.array_equal, other.get_weights(), model.get_weights())))
