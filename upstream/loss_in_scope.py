import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
loss = keras.losses.MeanSquaredError()
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    got = float(loss(tf.zeros((4, 1)), tf.ones((4, 1))))
print(f"squared error of ones for zeros, in a scope: got {got}, expected 1.0")
