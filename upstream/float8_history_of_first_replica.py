import contextlib
import io

import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = tf.constant([[1.0], [2.0], [3.0], [9.0]])


def largest_input(strategy):
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        with contextlib.redirect_stdout(io.StringIO()):  # later versions print a report
            model.quantize("float8")
        model.compile("sgd", "mse", jit_compile=False)
    model.fit(x, x, batch_size=4, shuffle=False, verbose=0)
    return float(tf.reduce_max(model.layers[0].inputs_amax_history))


got, expected = largest_input(two), largest_input(one)
print(f"largest of the inputs 1, 2, 3, 9 in the history: got {got}, expected {expected}")
