import tensorflow as tf

host = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * 4)
names = [device.name for device in tf.config.list_logical_devices("CPU")]
for count in (1, 2, 4):
    reduction = tf.distribute.ReductionToOneDevice()
    mirrored = tf.distribute.MirroredStrategy(names[:count], reduction)
    with mirrored.scope():
        layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
        model = tf.keras.Sequential(layers)
        model.compile(tf.keras.optimizers.SGD(0.05), loss="mse")
    model.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=16, verbose=0)
    print("bias after one step:", model.get_weights()[1].round(3))
