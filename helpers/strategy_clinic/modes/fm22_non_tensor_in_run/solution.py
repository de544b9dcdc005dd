import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Score(tf.experimental.ExtensionType):
    hits: tf.Tensor
    seen: tf.Tensor


def step():
    numbers = tf.constant([-1.0, 2.0, 3.0])
    return Score(tf.reduce_sum(tf.cast(numbers > 0, tf.int32)), tf.size(numbers))


@tf.function
def evaluate():
    return strategy.run(step)


scores = strategy.experimental_local_results(evaluate())
print("hits:", int(scores[0].hits), "of", int(scores[0].seen))
