import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def dice(labels, outputs):
    overlap, total = tf.reduce_sum(labels * outputs), tf.reduce_sum(labels + outputs)
    replica = tf.distribute.get_replica_context()
    if replica is not None:  # fit of Keras 3 calls the loss outside of the replicas, too
        overlap, total = replica.all_reduce("SUM", overlap), replica.all_reduce("SUM", total)
    return tf.fill(tf.shape(labels)[:1], 1 - 2 * overlap / total)


with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(1.0), loss=dice)
inputs = tf.constant([[1.0]] * 4 + [[0.5]] * 4)
labels = tf.constant([[1.0]] * 4 + [[0.0]] * 3 + [[1.0]])
model.fit(inputs, labels, batch_size=8, shuffle=False, verbose=0)
print("weight after one step:", round(float(model.get_weights()[0][0, 0]), 3))
