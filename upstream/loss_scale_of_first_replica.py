import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def after_overflow(strategy):
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        model = keras.Sequential([layer])
        optimizer = keras.optimizers.SGD(0.1)
        model.compile(keras.mixed_precision.LossScaleOptimizer(optimizer), "mse")
    x = tf.constant([[1.0], [float("inf")]])  # the second replica gets the second row
    model.fit(x, tf.zeros((2, 1)), batch_size=2, shuffle=False, verbose=0)
    return float(model.get_weights()[0][0, 0])


print(f"weight after an overflow: got {after_overflow(two)}, expected {after_overflow(one)}")
