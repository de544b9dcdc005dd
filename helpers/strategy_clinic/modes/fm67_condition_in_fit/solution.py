import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return tf.where(step < 1, 0.0, 0.125)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(WarmUp()), "mse")
before = model.get_weights()[1][0]
model.fit(tf.ones((8, 1)), tf.fill((8, 1), 9.0), batch_size=8, verbose=0)
print("bias has moved after 1 step:", bool(model.get_weights()[1][0] != before))
model.fit(tf.ones((8, 1)), tf.fill((8, 1), 9.0), batch_size=8, verbose=0)
print("bias has moved after 2 steps:", bool(model.get_weights()[1][0] != before))
