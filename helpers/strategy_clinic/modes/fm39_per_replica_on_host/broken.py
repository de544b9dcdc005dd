import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
dataset = tf.data.Dataset.from_tensors((tf.ones((16, 3)), tf.ones((16, 1)))).unbatch().batch(16)


def step(inputs, labels):
    errors = tf.reduce_sum(tf.square(model(inputs) - labels), axis=1)
    loss = tf.nn.compute_average_loss(errors, global_batch_size=16)
    return loss


@tf.function
def test_step(batch):
    return strategy.run(step, args=batch)


for batch in strategy.experimental_distribute_dataset(dataset):
    losses = test_step(batch)
    print("loss:", float(losses))  # wrong: one loss for each replica
