import tensorflow as tf
import tf_keras

strategy = tf.distribute.get_strategy()


class Classifier(tf.keras.Model):  # wrong: Keras 3, which does not know layers of tf_keras
    def __init__(self):
        super().__init__()
        self.body = tf_keras.layers.Dense(1, kernel_initializer="ones")
        self.head = tf.keras.layers.Dense(1, kernel_initializer="ones")  # wrong

    def call(self, inputs):
        return self.head(self.body(inputs))


with strategy.scope():
    model = Classifier()
    model.compile(tf.keras.optimizers.SGD(0.125), "mse")  # wrong
model.fit(tf.ones((8, 2)), tf.fill((8, 1), 3.0), batch_size=8, verbose=0)
print("kernel of the body after one step:", model.body.get_weights()[0][0])
