import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layer = tf.keras.layers.BatchNormalization(momentum=0.0)  # wrong: statistics per replica
    model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
    model.compile("sgd", "mse")
examples = tf.constant([[1.0]] * 8 + [[3.0]] * 8)
model.fit(examples, examples, batch_size=16, shuffle=False, verbose=0)
mean = layer.moving_mean.numpy()
variance = layer.moving_variance.numpy()
print("moving mean:", mean.round(3), " variance:", variance.round(3))
