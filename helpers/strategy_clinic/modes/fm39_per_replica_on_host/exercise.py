import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
dataset = tf.data.Dataset.range(16).batch(16)

for batch in strategy.experimental_distribute_dataset(dataset):
    largest = tf.reduce_max(batch)
    print("largest value:", int(largest))
