import tensorflow as tf

strategy = tf.distribute.get_strategy()


def loss(labels, outputs):
    answers = tf.round(outputs)  # wrong: tf.round has no derivative
    return tf.reduce_mean(tf.square(labels - answers), axis=1)


with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.SGD(0.05), loss=loss)
model.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=16, verbose=0)
print("bias after one step:", model.get_weights()[1].round(3))
