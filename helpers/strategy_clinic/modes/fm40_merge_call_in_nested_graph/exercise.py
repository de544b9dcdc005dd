import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Network(tf.keras.Sequential):
    @tf.function
    def update(self, gradients):
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            squares = tf.square(self(data) - 1.0)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(squares, axis=1))
        self.update(tape.gradient(loss, self.trainable_variables))


with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = Network(layers)
    model.compile(tf.keras.optimizers.SGD(0.05))
    model.optimizer.build(model.trainable_variables)
tf.function(lambda: strategy.run(model.train_step, args=(tf.ones((8, 3)),)))()
print("bias after one step:", model.get_weights()[1].round(3))
