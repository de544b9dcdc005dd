import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Own(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        tracker = self.metrics[0]
        tracker.update_state(loss)  # wrong: it is divided by the number of replicas
        return {"loss": tracker.result()}


with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = Own([tf.keras.Input((1,)), dense])
    model.compile("sgd", "mse")
history = model.fit(tf.ones((8, 1)), tf.fill((8, 1), 2.0), batch_size=8, verbose=0).history
print("loss of zeros for twos:", round(float(history["loss"][0]), 3))
