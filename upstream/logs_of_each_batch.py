import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
scores, labels = (
    tf.constant([[0.9], [0.8], [0.7], [0.1]]),
    tf.constant([[1.0], [0.0], [1.0], [0.0]]),
)


def logs_of_a_batch(strategy):
    seen = {}
    with strategy.scope():
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Sequential([keras.Input((1,)), layer])
        metrics = [keras.metrics.Precision(name="precision"), keras.metrics.AUC(name="auc")]
        model.compile(keras.optimizers.SGD(0.0), "mse", metrics=metrics)
    keep = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: seen.update(logs))
    model.fit(scores, labels, batch_size=4, shuffle=False, verbose=0, callbacks=[keep])
    return {name: round(float(value), 4) for name, value in seen.items()}


got, expected = logs_of_a_batch(two), logs_of_a_batch(one)
for name in ("precision", "auc"):
    print(f"{name} in the logs of a batch: got {got[name]}, expected {expected[name]}")
