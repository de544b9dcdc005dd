import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(loss="mse", metrics=[tf.keras.metrics.Recall()])
predictions = tf.constant([[1.0]] * 8 + [[0.0]] * 8)
labels = tf.constant([[1.0]] * 6 + [[0.0]] * 8 + [[1.0]] * 2)
loss, share = model.evaluate(predictions, labels, batch_size=16, verbose=0)
print("recall:", round(share, 3))
