import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.layers.Conv2D(2, 2), tf.keras.layers.BatchNormalization()]
    layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((4, 4, 1)), *layers])
    model.compile("sgd", loss="mse")
dataset = tf.data.Dataset.from_tensor_slices((tf.ones((17, 4, 4, 1)), tf.ones((17, 1))))
model.fit(dataset.batch(16, drop_remainder=True), verbose=0)
finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in model.get_weights()])
print("all weights are numbers:", bool(finite))
