import tensorflow as tf
import tf_keras

strategy = tf.distribute.get_strategy()


class Classifier(tf_keras.Model):  # fixed
    def __init__(self):
        super().__init__()
        self.body = tf_keras.layers.Dense(1, kernel_initializer="ones")
        self.head = tf_keras.layers.Dense(1, kernel_initializer="ones")  # fixed

    def call(self, inputs):
        return self.head(self.body(inputs))


with strategy.scope():
    model = Classifier()
    model.compile(tf_keras.optimizers.SGD(0.125), "mse")  # fixed
model.fit(tf.ones((8, 2)), tf.fill((8, 1), 3.0), batch_size=8, verbose=0)
print("kernel of the body after one step:", model.body.get_weights()[0][0])
