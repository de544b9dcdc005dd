import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Own(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return keras.ops.mean(keras.ops.square(y - y_pred))


def after_a_step(strategy):
    with strategy.scope():
        model = Own([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile(keras.optimizers.SGD(0.1))
    loss = model.fit(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0).history["loss"][0]
    return {"loss": loss, "bias": round(float(model.get_weights()[1][0]), 4)}


got, expected = after_a_step(two), after_a_step(one)
for name in got:
    print(
        f"{name} of a model with its own compute_loss: got {got[name]}, expected {expected[name]}"
    )
