import tensorflow as tf

strategy = tf.distribute.get_strategy()


class Centre(tf.keras.layers.Layer):
    def call(self, inputs):
        self.mean = tf.reduce_mean(inputs)  # wrong: a symbolic tensor, which has no value
        return inputs - self.mean


with strategy.scope():
    centre = Centre()
    model = tf.keras.Sequential([tf.keras.Input((2,)), centre, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones((16, 2)), tf.ones((16, 1)), batch_size=16, verbose=0)
print("mean above zero:", bool(centre.mean > 0.0))
