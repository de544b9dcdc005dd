import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def bias_after_a_step(strategy, loss):
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    model.fit(tf.ones((4, 1)), tf.ones((4, 1)), batch_size=4, verbose=0)
    return round(float(model.get_weights()[1][0]), 4)


def of_the_batch(y, p):
    return tf.reduce_mean(tf.square(y - p))


for name, loss in {"of each example": "mse", "of the batch": of_the_batch}.items():
    got, expected = bias_after_a_step(two, loss), bias_after_a_step(one, loss)
    print(f"bias after a step, loss {name}: got {got}, expected {expected}")
