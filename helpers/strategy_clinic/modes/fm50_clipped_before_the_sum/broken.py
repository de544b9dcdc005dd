import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(1.0, global_clipnorm=0.1)  # wrong: clips in each replica
    model.compile(optimizer, loss="mse")
inputs = tf.constant([[4.0, 0.0]] * 8 + [[0.0, 4.0]] * 8)
labels = tf.constant([[1.0]] * 8 + [[-1.0]] * 8)
model.fit(inputs, labels, batch_size=16, shuffle=False, verbose=0)
update = tf.linalg.global_norm(model.get_weights())
print("norm of the first update:", round(float(update), 3))
