import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = tf.data.Dataset.range(1, 14).batch(16)
with strategy.scope():  # fixed
    mean = tf.keras.metrics.Mean()  # fixed


def step(batch):
    errors = tf.square(tf.cast(batch, tf.float32) - 4.0)
    mean.update_state(errors)  # fixed: one value for each example


@tf.function
def evaluate_step(batch):
    strategy.run(step, args=(batch,))  # fixed
    return mean.result()  # fixed


for batch in strategy.experimental_distribute_dataset(data):
    result = evaluate_step(batch)
print("mean error:", round(float(result), 2))
