import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    mean = tf.Variable(0.0)
dataset = tf.data.Dataset.range(16).batch(16)


def step(batch):
    mean.assign(tf.reduce_mean(tf.cast(batch, tf.float32)))


@tf.function
def train_step(batch):
    strategy.run(step, args=(batch,))


for batch in strategy.experimental_distribute_dataset(dataset):
    train_step(batch)
print("mean:", mean.numpy())
