import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def in_numpy(labels, outputs):
    return np.max(np.abs(labels - outputs))


def largest_error(labels, outputs):
    return tf.ensure_shape(tf.numpy_function(in_numpy, [labels, outputs], tf.float32), ())


with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse", metrics=[largest_error], jit_compile=True)  # wrong: no NumPy in XLA
data = tf.data.Dataset.from_tensors((tf.ones((8, 3)), tf.ones((8, 1)))).unbatch().batch(8)
history = model.fit(data, verbose=0).history
print("largest error:", history["largest_error"])
