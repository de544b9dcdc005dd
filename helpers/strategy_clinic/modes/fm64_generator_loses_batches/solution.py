import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
table = np.arange(80, dtype="float32").reshape(80, 1)


def parts():
    for start in range(0, 80, 8):
        yield table[start : start + 8], np.zeros((8, 1), "float32")


with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(loss="mse")
signature = (tf.TensorSpec((None, 1)), tf.TensorSpec((None, 1)))
data = tf.data.Dataset.from_generator(parts, output_signature=signature)
loss = model.evaluate(data, verbose=0)
print("loss is that of the whole table:", bool(np.isclose(loss, np.mean(table**2))))
