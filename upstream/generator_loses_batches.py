import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def batches():
    for number in range(10):
        yield tf.fill((2, 1), float(number)), tf.zeros((2, 1))


def losses(strategy):
    with strategy.scope():
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Sequential([keras.Input((1,)), layer])
        model.compile(keras.optimizers.SGD(0.0), "mse")
    trained = model.fit(batches(), verbose=0).history["loss"][0]
    return {"fit": round(trained, 2), "evaluate": round(model.evaluate(batches(), verbose=0), 2)}


got, expected = losses(two), losses(one)
for method in got:
    print(f"10 batches, loss of {method}: got {got[method]}, expected {expected[method]}")
