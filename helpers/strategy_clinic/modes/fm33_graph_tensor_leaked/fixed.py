import tensorflow as tf

strategy = tf.distribute.get_strategy()


class Centre(tf.keras.layers.Layer):
    def __init__(self, **options):  # fixed
        super().__init__(**options)  # fixed
        how = "mean" if hasattr(tf.keras, "Variable") else tf.VariableAggregation.MEAN  # fixed
        self.mean = self.add_weight(initializer="zeros", trainable=False, aggregation=how)  # fixed

    def call(self, inputs):
        self.mean.assign(tf.reduce_mean(inputs))  # fixed
        return inputs - self.mean


with strategy.scope():
    centre = Centre()
    model = tf.keras.Sequential([tf.keras.Input((2,)), centre, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones((16, 2)), tf.ones((16, 1)), batch_size=16, verbose=0)
print("mean above zero:", bool(centre.mean > 0.0))
