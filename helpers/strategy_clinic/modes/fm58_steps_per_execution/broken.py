import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=4)  # wrong: an all-reduce in Keras's loop
model.fit(np.ones((64, 3)), np.ones((64, 1)), batch_size=8, verbose=0)
print("steps:", model.optimizer.iterations.numpy())
