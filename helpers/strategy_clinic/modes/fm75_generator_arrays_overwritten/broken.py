import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
np.save("ones.npy", np.ones((64, 1), "float32"))
array = np.load("ones.npy", mmap_mode="c")


def batches():
    for start in range(0, 64, 16):
        yield array[start : start + 16]  # wrong: a part of the array itself


@tf.function
def train_step(iterator):
    return strategy.run(lambda part: tf.reduce_sum(part * 2), args=(next(iterator),))


data = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None, 1)))
iterator = iter(strategy.experimental_distribute_dataset(data))
for _ in range(4):
    train_step(iterator)
print("the array has ones only:", bool((array == 1).all()))
