import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with two.scope():
    layer = keras.layers.Dropout(0.5)


@tf.function
def masks():
    return two.run(lambda: layer(tf.ones((1, 64)), training=True))


of_replicas = two.experimental_local_results(masks())
different = len({bytes(each.numpy()) for each in of_replicas})
print(f"different masks on 2 replicas: got {different}, expected 2")
