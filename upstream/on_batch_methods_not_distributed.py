import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
two, rows = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), []


class Rows(keras.layers.Layer):
    def call(self, x):
        tf.py_function(lambda n: rows.append(int(n)), [tf.shape(x)[0]], [])
        return x


with two.scope():
    model = keras.Sequential([Rows(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x = y = tf.ones((8, 1))
for method in (model.train_on_batch, model.test_on_batch):
    rows.clear()
    method(x, y)
    print(f"{method.__name__}, rows of each replica: got {rows}, expected [4, 4]")
print(f"predict_on_batch, rows returned: got {len(model.predict_on_batch(x))}, expected 8")
