import numpy as np
import tensorflow as tf
import tf_keras  # Keras 2


def make_model(keras):
    layers = [keras.layers.LSTM(2), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((4, 3)), *layers])


old = make_model(tf_keras)
old.save("old.h5")
new = tf.keras.models.load_model("old.h5", compile=False)
data = tf.ones((2, 4, 3))
print("the same predictions:", np.allclose(old(data), new(data), atol=1e-6))
