import keras
import tensorflow as tf

x, y = tf.ones((2, 2, 1)), tf.constant([[[1.0], [1.0]], [[3.0], [3.0]]])
model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile("sgd", "mse")
for weights in ([1.0, 0.0], [0.0, 1.0]):  # one for each sequence
    weight = tf.constant(weights)
    got = model.evaluate(x, y, sample_weight=weight, batch_size=2, verbose=0)
    expected = float(tf.reduce_mean(tf.square(y[:, :, 0]) * weight[:, tf.newaxis]))
    print(f"sequences weighted {weights}, loss: got {round(got, 4)}, expected {round(expected, 4)}")
