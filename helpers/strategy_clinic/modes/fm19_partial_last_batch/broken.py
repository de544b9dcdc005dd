import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = tf.data.Dataset.range(1, 14).batch(16)


def step(batch):
    errors = tf.square(tf.cast(batch, tf.float32) - 4.0)
    return tf.reduce_mean(errors)  # wrong: the mean of one replica's examples


@tf.function
def evaluate_step(batch):
    return strategy.reduce("MEAN", strategy.run(step, args=(batch,)), axis=None)  # wrong


for batch in strategy.experimental_distribute_dataset(data):
    result = evaluate_step(batch)
print("mean error:", round(float(result), 2))
