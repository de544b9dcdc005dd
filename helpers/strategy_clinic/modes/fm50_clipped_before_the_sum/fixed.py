import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@tf.keras.utils.register_keras_serializable()  # fixed
class ClipsTheSum(tf.keras.optimizers.SGD):  # fixed
    def apply(self, grads, trainable_variables=None):  # fixed
        replica = tf.distribute.get_replica_context()  # fixed
        total = [tf.convert_to_tensor(each) for each in grads if each is not None]  # fixed
        total, n = replica.all_reduce("SUM", total), replica.num_replicas_in_sync  # fixed
        own = iter([g / n for g in tf.clip_by_global_norm(total, self.global_clipnorm)[0]])  # fixed
        super().apply([g if g is None else next(own) for g in grads], trainable_variables)  # fixed


with strategy.scope():
    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = ClipsTheSum(1.0, global_clipnorm=0.1)  # fixed
    model.compile(optimizer, loss="mse")
inputs = tf.constant([[4.0, 0.0]] * 8 + [[0.0, 4.0]] * 8)
labels = tf.constant([[1.0]] * 8 + [[-1.0]] * 8)
model.fit(inputs, labels, batch_size=16, shuffle=False, verbose=0)
update = tf.linalg.global_norm(model.get_weights())
print("norm of the first update:", round(float(update), 3))
