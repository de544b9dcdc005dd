import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
dataset = tf.data.Dataset.range(16).batch(8)
iterator = iter(strategy.experimental_distribute_dataset(dataset))


@tf.function
def add(batches):
    sums = strategy.run(tf.reduce_sum, args=(next(batches),))
    return strategy.reduce("SUM", sums, axis=None)


total = 0
for _ in range(3):
    for _ in range(2):
        total += int(add(iterator))
print("sum of three epochs:", total)
