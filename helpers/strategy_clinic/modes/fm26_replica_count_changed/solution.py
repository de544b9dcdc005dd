import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])
with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(0.05), "mse")

batch_size = 8
dataset = tf.data.Dataset.from_tensors((tf.ones((64, 1)), tf.ones((64, 1)))).unbatch()
model.fit(dataset.batch(batch_size), verbose=0)
print("kernel after one epoch:", round(float(model.get_weights()[0][0, 0]), 3))
