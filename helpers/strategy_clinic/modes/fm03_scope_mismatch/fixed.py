import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


with strategy.scope():
    model = make_model()  # fixed: in the scope of the same strategy
    model.compile(optimizer=tf.keras.optimizers.Adam(0.1), loss="mse")
model.fit(tf.ones((8, 1)), tf.zeros((8, 1)), batch_size=8, epochs=2, verbose=0)
print("after", model.optimizer.iterations.numpy(), "steps:", model.get_weights()[0].round(2))
