import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1000,)), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)


def bytes_of(values):
    return sum(tf.convert_to_tensor(value).numpy().nbytes for value in values)


MEMORY, EXAMPLE = 200_000, 4 * 1000  # bytes of one device, and of one example
variables = [*model.variables, *optimizer.variables]
replicas = strategy.num_replicas_in_sync
batch = (MEMORY - bytes_of(variables)) // EXAMPLE * replicas  # fixed: all of them on each device
data = tf.data.Dataset.from_tensor_slices(tf.ones((batch, 1000))).batch(batch)
part = next(iter(strategy.experimental_distribute_dataset(data)))
needed = strategy.run(lambda examples: bytes_of([examples, *variables]), args=(part,))
most = max(strategy.experimental_local_results(needed))
print("a step fits into the memory of each device:", most <= MEMORY)
