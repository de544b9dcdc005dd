import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def bias_after_a_step(strategy, shape, loss):
    with strategy.scope():
        dense = keras.layers.Dense(1, kernel_initializer="zeros")
        model = keras.Sequential([dense, keras.layers.Reshape(shape)])
        model.compile(keras.optimizers.SGD(0.1), loss)
    model.fit(tf.ones((4, 1)), tf.ones((4, *shape)), batch_size=4, verbose=0)
    return round(float(model.get_weights()[1][0]), 4)


def of_the_batch(y, p):
    return tf.reduce_mean(tf.square(y - p))


for shape, loss in (((1,), "mse"), ((), "mse"), ((1,), of_the_batch)):
    got, expected = bias_after_a_step(two, shape, loss), bias_after_a_step(one, shape, loss)
    name = loss if loss == "mse" else "of the batch"
    print(
        f"output (batch, *{shape}), loss {name}, bias after a step: got {got}, expected {expected}"
    )
