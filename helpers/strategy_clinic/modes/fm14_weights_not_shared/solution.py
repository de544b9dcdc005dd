import tensorflow as tf

encoder = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
encoder.build((None, 2))
weights = [encoder.kernel]


def decode(code):
    return tf.matmul(code, encoder.kernel, transpose_b=True)


data = tf.constant([[1.0, 2.0]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.square(decode(encoder(data)) - data))
for weight, gradient in zip(weights, tape.gradient(loss, weights)):
    weight.assign_sub(0.01 * gradient)
print("kernel of the encoder:", encoder.get_weights()[0].ravel().round(3))
print("kernel of the decoder:", decode(tf.ones((1, 1))).numpy().ravel().round(3))
