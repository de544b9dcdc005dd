import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def fit(rows):
    with two.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    try:
        model.fit(tf.ones((rows, 1)), tf.ones((rows, 1)), batch_size=8, verbose=0)
    except tf.errors.InvalidArgumentError as error:
        return type(error).__name__
    return int(model.optimizer.iterations.numpy())


for rows in (8, 7, 1):
    print(f"{rows} rows, steps of an epoch: got {fit(rows)}, expected 1")
