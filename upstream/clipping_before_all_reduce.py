import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def size_of_update(strategy, **clipping):
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(1.0, **clipping), "mse")
    x = tf.constant([[9.0, 0.0], [0.0, 9.0]])
    model.fit(x, tf.ones((2, 1)), batch_size=2, shuffle=False, verbose=0)
    return round(float(tf.norm(model.get_weights()[0])), 4)


for clipping in ({"global_clipnorm": 0.1}, {"clipnorm": 0.1}):
    got, expected = size_of_update(two, **clipping), size_of_update(one, **clipping)
    print(f"{clipping}, norm of the update: got {got}, expected {expected}")
