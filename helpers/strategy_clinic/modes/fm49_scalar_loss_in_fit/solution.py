import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class WeightedError(tf.keras.losses.Loss):
    def call(self, labels, predictions):
        weights = tf.where(labels > 0.0, 2.0, 1.0)
        errors = weights * tf.square(labels - predictions)
        return tf.reduce_mean(errors, axis=-1)


with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.SGD(0.05), loss=WeightedError())
model.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=16, verbose=0)
print("bias after one step:", model.get_weights()[1].round(3))
