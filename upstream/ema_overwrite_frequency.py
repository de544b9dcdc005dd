import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def weight_after_two_steps(strategy):
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras.Sequential([layer])
        average = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}
        model.compile(keras.optimizers.SGD(0.1, **average), "mse")
    try:
        model.fit(tf.ones((8, 1)), tf.ones((8, 1)), batch_size=4, verbose=0)
    except RuntimeError as error:
        return type(error).__name__
    return round(float(layer.get_weights()[0][0, 0]), 4)


got, expected = weight_after_two_steps(two), weight_after_two_steps(one)
print(f"weight that its average overwrites: got {got}, expected {expected}")
