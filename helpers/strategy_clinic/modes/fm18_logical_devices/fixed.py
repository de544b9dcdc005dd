import tensorflow as tf

tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
topology = tf.tpu.experimental.initialize_tpu_system(tpu)
computation_shape = [2, 2, 1, 2]  # fixed: all eight cores of a v2-8 or v3-8
cores = tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape, num_replicas=1)
tpu_strategy = tf.distribute.TPUStrategy(
    tpu, experimental_device_assignment=cores, experimental_spmd_xla_partitioning=True
)


def step(image):
    image = tpu_strategy.experimental_split_to_logical_devices(image, [1, 2, 4, 1])
    return tf.reduce_sum(image)


@tf.function
def train_step(image):
    return tpu_strategy.run(step, args=(image,))


sums = train_step(tf.ones((1, 4, 8, 1)))
print("sum of the image:", tpu_strategy.reduce("MEAN", sums, axis=None).numpy())
