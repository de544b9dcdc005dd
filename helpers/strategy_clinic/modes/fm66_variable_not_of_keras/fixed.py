import tensorflow as tf

strategy = tf.distribute.get_strategy()


class Scale(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.factor = self.add_weight(shape=(), initializer="ones")  # fixed

    def call(self, inputs):
        return inputs * self.factor


with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), Scale(), dense])
    model.compile(tf.keras.optimizers.SGD(0.125), "mse")
model.fit(tf.ones((8, 1)), tf.fill((8, 1), 3.0), batch_size=8, verbose=0)
print("factor after one step:", round(float(model.layers[0].factor.numpy()), 3))
