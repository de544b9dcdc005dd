import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = tf.data.Dataset.range(1, 14).batch(8)


def step(batch):
    return tf.cast(batch > 4, tf.float32)


@tf.function
def count(batch):
    found = strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=0)
    return tf.reduce_sum(found)


batches = strategy.experimental_distribute_dataset(data)
print("above 4:", sum(int(count(batch)) for batch in batches))
