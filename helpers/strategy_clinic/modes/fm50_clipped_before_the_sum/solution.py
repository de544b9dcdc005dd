import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@tf.keras.utils.register_keras_serializable()
class ClipsTheSum(tf.keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        replica = tf.distribute.get_replica_context()
        total = [tf.convert_to_tensor(each) for each in grads if each is not None]
        total, n = replica.all_reduce("SUM", total), replica.num_replicas_in_sync
        limit = self.clipvalue
        own = iter([tf.clip_by_value(each, -limit, limit) / n for each in total])
        super().apply([g if g is None else next(own) for g in grads], trainable_variables)


with strategy.scope():
    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile(ClipsTheSum(1.0, clipvalue=0.1), loss="mse")
inputs = tf.constant([[4.0, 0.0], [0.0, 4.0]] * 8)
model.fit(inputs, tf.ones((16, 1)), batch_size=16, verbose=0)
largest = max(float(tf.reduce_max(tf.abs(each))) for each in model.get_weights())
print("largest change of a weight:", round(largest, 3))
