import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(optimizer="sgd", loss="mse")
tf.io.write_file("data.csv", "1,2\n" * 16)
examples = tf.data.experimental.CsvDataset("data.csv", [0.0, 0.0]).map(lambda x, y: ([x], [y]))
dataset = examples.batch(8)  # wrong: two batches, and three epochs of two steps need six
losses = model.fit(dataset, epochs=3, steps_per_epoch=2, verbose=0).history["loss"]
print("losses:", [round(loss, 2) for loss in losses])
