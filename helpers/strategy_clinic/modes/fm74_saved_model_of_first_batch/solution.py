import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    sentence = tf.keras.Input((4,), dtype="int32")
    embedding, flat = tf.keras.layers.Embedding(9, 2), tf.keras.layers.Flatten()
    model = tf.keras.Sequential([sentence, embedding, flat, tf.keras.layers.Dense(1)])
    model.compile(loss="mse")
model.evaluate(tf.ones((16, 4), tf.int32), tf.ones((16, 1)), batch_size=16, verbose=0)
tf.saved_model.save(model, "exported")
exported = tf.saved_model.load("exported")
outputs = exported.signatures["serving_default"](tf.ones((3, 4), tf.int32))
print("outputs for three sentences:", [len(value) for value in outputs.values()])
