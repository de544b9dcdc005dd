import tensorflow as tf

x = tf.ones((8, 1))


def start(epochs):
    base = tf.keras.layers.Dense(1, kernel_initializer="ones", trainable=False)
    model = tf.keras.Sequential([tf.keras.Input((1,)), base, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    backup = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    model.fit(x, 2 * x, epochs=epochs, verbose=0, callbacks=[backup])
    return model


start(3)  # the first run ends after three epochs
model = start(4)  # the second run continues with the fourth
model.save("head.keras")
model = tf.keras.models.load_model("head.keras")
model.layers[0].trainable = True
model.compile(tf.keras.optimizers.SGD(0.01), "mse")
model.fit(x, 2 * x, epochs=2, verbose=0)
print("kernel of the base has moved:", float(model.layers[0].get_weights()[0][0, 0]) != 1.0)
