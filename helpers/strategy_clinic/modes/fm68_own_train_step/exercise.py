import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Own(tf.keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
        return tf.reduce_mean(tf.square(y - y_pred))


with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = Own([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(0.125))
model.fit(tf.ones((8, 1)), tf.fill((8, 1), 2.0), batch_size=8, verbose=0)
print("bias after one step:", model.get_weights()[1])
