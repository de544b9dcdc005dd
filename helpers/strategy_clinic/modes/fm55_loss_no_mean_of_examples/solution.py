import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    scale = tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(1.0)
pairs = [[1.0, 1.0]] * 4 + [[0.5, 0.0]] * 3 + [[0.5, 1.0]]
dataset = tf.data.Dataset.from_tensor_slices(pairs).batch(8)


def step(pairs):
    with tf.GradientTape() as tape:
        outputs = scale * pairs[:, 0]
        replica = tf.distribute.get_replica_context()
        overlap = replica.all_reduce("SUM", tf.reduce_sum(outputs * pairs[:, 1]))
        total = replica.all_reduce("SUM", tf.reduce_sum(outputs + pairs[:, 1]))
        loss = (1 - 2 * overlap / total) / strategy.num_replicas_in_sync
    optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])


@tf.function
def train_step(batch):
    strategy.run(step, args=(batch,))


for batch in strategy.experimental_distribute_dataset(dataset):
    train_step(batch)
print("scale after one step:", scale.numpy().round(3))
