import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def step():
    loss = tf.reduce_mean(tf.square(tf.constant([1.0, 2.0])))
    losses = tf.distribute.get_replica_context().all_gather(loss, axis=0)
    return tf.reduce_max(losses)


@tf.function
def largest():
    return strategy.run(step)


print("largest loss:", float(strategy.experimental_local_results(largest())[0]))
