import tensorflow as tf

tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
topology = tf.tpu.experimental.initialize_tpu_system(tpu)
computation_shape = [2, 1, 1, 2]
cores = tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape, num_replicas=2)
tpu_strategy = tf.distribute.TPUStrategy(
    tpu, experimental_device_assignment=cores, experimental_spmd_xla_partitioning=True
)


def step(table):
    table = tpu_strategy.experimental_split_to_logical_devices(table, [1, 2])
    return tf.reduce_sum(table)


@tf.function
def train_step(table):
    return tpu_strategy.run(step, args=(table,))


sums = train_step(tf.ones((4, 6)))
print("sum of the table:", tpu_strategy.reduce("MEAN", sums, axis=None).numpy())
