import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Pairs(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.pairs = tf.keras.layers.Reshape((2, 2))

    def call(self, inputs):
        return self.pairs(inputs)


with strategy.scope():
    model = Pairs()
    model.compile(loss="mse")
model.evaluate(tf.ones((16, 4)), tf.ones((16, 2, 2)), batch_size=16, verbose=0)
signature = [tf.TensorSpec((None, 4), tf.float32, name="inputs")]  # fixed
serve = tf.function(lambda inputs: model(inputs, training=False), signature)  # fixed
tf.saved_model.save(model, "exported", signatures=serve)  # fixed
exported = tf.saved_model.load("exported")
outputs = exported.signatures["serving_default"](tf.ones((3, 4)))
print("outputs for three examples:", [len(value) for value in outputs.values()])
