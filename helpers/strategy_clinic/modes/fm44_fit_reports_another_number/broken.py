import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def rmse(labels, predictions):  # wrong: called once for each replica
    return tf.sqrt(tf.reduce_mean(tf.square(labels - predictions)))  # wrong: one number


with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(loss="mse", metrics=[rmse])  # wrong
inputs = tf.fill((16, 1), 10.0)
labels = tf.constant([[9.0]] * 8 + [[3.0]] * 8)
loss, error = model.evaluate(inputs, labels, batch_size=16, verbose=0)
print("loss:", round(loss, 3), " root mean squared error:", round(error, 3))
