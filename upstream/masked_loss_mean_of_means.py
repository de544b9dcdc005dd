import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def weight_after_a_step(strategy, mask):
    with strategy.scope():
        layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = tf.keras.Sequential([tf.keras.layers.Masking(), layer])
        model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    x = tf.reshape(tf.constant(mask), (2, 4, 1))
    y = tf.constant([1.0, 1, 1, 1, 5, 5, 5, 5], shape=(2, 4, 1))
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0)
    return round(float(layer.get_weights()[0][0, 0]), 4)


for mask in ([1.0] * 8, [1.0] * 5 + [0.0] * 3):
    got, expected = weight_after_a_step(two, mask), weight_after_a_step(one, mask)
    print(f"mask {mask}, weight after a step: got {got}, expected {expected}")
