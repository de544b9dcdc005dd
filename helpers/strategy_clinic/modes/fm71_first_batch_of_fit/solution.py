import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
texts = [["good film"], ["bad film"], ["good"], ["bad"]] * 4
dataset = tf.data.Dataset.from_tensor_slices((texts, [[1.0], [0.0]] * 8)).batch(8)
to_numbers = tf.keras.layers.TextVectorization(output_sequence_length=2)
to_numbers.set_vocabulary(["good", "bad", "film"])
with strategy.scope():
    layers = [tf.keras.layers.Embedding(5, 2), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
    inputs = tf.keras.Input((2,), dtype="int64")
    model = tf.keras.Sequential([inputs, *layers])
    model.compile("sgd", "mse")
dataset = dataset.map(lambda text, label: (to_numbers(text), label))
history = model.fit(dataset, verbose=0)
print("epochs:", len(history.epoch))
