import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x, y, weights = tf.ones((4, 1)), tf.constant([[1.0], [1], [5], [5]]), tf.constant([1.0, 1, 1, 0])


def fitted(strategy, outputs, loss, y, weights=None):
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(outputs, kernel_initializer="zeros")])
        model.compile(keras.optimizers.SGD(0.5), loss)
    model.fit(x, y, sample_weight=weights, batch_size=4, shuffle=False, verbose=0)
    return [round(float(bias), 4) for bias in model.get_weights()[1]]


mean = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
ignoring = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
for name, case in {
    "mean_with_sample_weight": (1, mean, y, weights),
    "ignore_class": (2, ignoring, tf.constant([0, 0, 1, -1])),
}.items():
    print(f"{name}, bias after a step: got {fitted(two, *case)}, expected {fitted(one, *case)}")
