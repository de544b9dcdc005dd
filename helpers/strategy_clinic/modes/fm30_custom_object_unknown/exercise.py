import tensorflow as tf


def distance(labels, predictions):
    return tf.reduce_mean(tf.abs(labels - predictions))


dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
model = tf.keras.Sequential([tf.keras.Input((3,)), dense])
model.compile("sgd", loss=distance)
model.save("with_loss.keras")

loaded = tf.keras.models.load_model("with_loss.keras")
print("loss:", loaded.evaluate(tf.ones((4, 3)), tf.ones((4, 1)), verbose=0))
