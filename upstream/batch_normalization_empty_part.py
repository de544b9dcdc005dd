import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def not_finite(strategy, rows):
    with strategy.scope():
        layers = [keras.layers.BatchNormalization(), keras.layers.Dense(1)]
        model = keras.Sequential(layers)
        model.compile(keras.optimizers.SGD(0.01), "mse")
    x = tf.reshape(tf.range(2.0 * rows), (rows, 2))
    model.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)
    return sum(bool(tf.reduce_any(tf.math.is_nan(each))) for each in model.get_weights())


for rows in (8, 9):
    got, expected = not_finite(two, rows), not_finite(one, rows)
    print(f"{rows} rows, batches of 4, weights that are NaN: got {got}, expected {expected}")
