import tensorflow as tf

used, unused = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1, use_bias=False)
unused.build((None, 1))
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(used(tf.ones((1, 1))))
try:
    got = tape.gradient(loss, unused.trainable_variables, unconnected_gradients="zero")
    got = [each.numpy().tolist() for each in got]
except AttributeError as error:
    got = f"AttributeError: {error}"
print(f"gradient of an unused layer: got {got}, expected [[[0.0]]]")
