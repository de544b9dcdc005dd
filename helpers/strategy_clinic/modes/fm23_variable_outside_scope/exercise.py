import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
data = tf.data.Dataset.from_tensors(tf.range(16.0)).repeat(2).unbatch().batch(16)


def step(batch):
    mean.assign_add(0.5 * (tf.reduce_mean(batch) - mean))


@tf.function
def train_step(batch):
    strategy.run(step, args=(batch,))


for batch in strategy.experimental_distribute_dataset(data):
    train_step(batch)
print("running mean:", mean.numpy())
