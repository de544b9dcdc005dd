import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])
inputs = labels = tf.ones((64, 1))


def make_model():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


model = make_model()  # the first run, on one device
model.compile(tf.keras.optimizers.SGD(0.05), tf.keras.losses.MeanSquaredError())
model.fit(inputs, labels, batch_size=8, verbose=0)
model.save("model.keras")

with strategy.scope():  # the second run
    loaded = tf.keras.models.load_model("model.keras")
    loaded.compile(tf.keras.optimizers.SGD(0.05), "mse")  # plain SGD has no state to lose
loaded.fit(inputs, labels, batch_size=8 * strategy.num_replicas_in_sync, verbose=0)  # wrong: was 8
print("examples in each step:", 64 // loaded.history.params["steps"])
print("kernel after two epochs:", round(float(loaded.get_weights()[0][0, 0]), 3))
