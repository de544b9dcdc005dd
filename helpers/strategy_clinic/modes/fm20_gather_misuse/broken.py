import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def step():
    loss = tf.reduce_mean(tf.square(tf.constant([1.0, 2.0])))
    return loss  # wrong: a scalar has no axis to be concatenated along


@tf.function
def losses():
    return strategy.run(step)


gathered = strategy.gather(losses(), axis=0)
print("largest loss:", float(tf.reduce_max(gathered)))
