import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
np.save("targets.npy", np.arange(64, dtype="float32").reshape(64, 1))
targets = np.load("targets.npy", mmap_mode="c")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(1e-5), loss="mse")


def batches():
    while True:
        for start in range(0, 64, 16):
            yield np.ones((16, 1), "float32"), targets[start : start + 16]


model.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
print("the targets are as before:", bool((targets[:, 0] == range(64)).all()))
