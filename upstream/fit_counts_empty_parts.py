import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def weight_of_last_batch(strategy, rows):
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(0.5), "mse")
    x = tf.concat([tf.zeros((4, 1)), tf.ones((rows, 1))], 0)  # the first batch changes nothing
    model.fit(x, x, batch_size=4, shuffle=False, verbose=0)
    return float(layer.get_weights()[0][0, 0])


for rows in (4, 2, 1):
    got, expected = weight_of_last_batch(two, rows), weight_of_last_batch(one, rows)
    print(f"last batch of {rows}, weight after it: got {got}, expected {expected}")
