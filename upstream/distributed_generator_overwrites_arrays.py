import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
memory = np.ones(64 + 16, "float32")
start = -memory.ctypes.data % 64 // 4  # aligned to 64 bytes, it is used and not copied
x = memory[start : start + 64].reshape(64, 1)


def batches():
    for n in range(0, 64, 16):
        yield x[n : n + 16]


strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None, 1)))
iterator = iter(strategy.experimental_distribute_dataset(data))


@tf.function
def step():
    return strategy.run(lambda part: tf.reduce_sum(part * 2), args=(next(iterator),))


for _ in range(4):
    step()
kept = "kept" if (x == 1).all() else "overwritten"
print(f"an array that four steps have read: got {kept}, expected kept")
