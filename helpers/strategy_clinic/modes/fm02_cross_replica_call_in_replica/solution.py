import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])


def predict():
    return model(tf.ones((3, 1)))


@tf.function
def predict_step():
    return strategy.gather(strategy.run(predict), axis=0)


predictions = predict_step()
print("all predictions:", predictions.shape[0] == 3 * strategy.num_replicas_in_sync)
