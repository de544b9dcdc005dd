import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
    model.compile("sgd", loss="mse")
examples = tf.reshape(tf.range(17.0) % 4, (17, 1))
dataset = tf.data.Dataset.from_tensor_slices((examples, examples))
dataset = dataset.batch(16)  # wrong: the last batch has one example, and one replica gets none
model.fit(dataset, verbose=0)
finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in model.get_weights()])
print("all weights are numbers:", bool(finite))
