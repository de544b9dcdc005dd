import tensorflow as tf


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = make_model()
model.save("model.keras")

with strategy.scope():  # fixed
    loaded = tf.keras.models.load_model("model.keras")  # fixed
    loaded.compile("adam", "mse")  # fixed
loaded.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=16, verbose=0)
used = loaded.distribute_strategy.num_replicas_in_sync
print("idle devices:", strategy.num_replicas_in_sync - used)
