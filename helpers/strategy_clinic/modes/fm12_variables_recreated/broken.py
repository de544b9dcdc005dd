import tensorflow as tf


class Scale(tf.keras.layers.Layer):
    def call(self, inputs):
        self.factor = tf.Variable(1.0)  # wrong: every call creates another variable
        return inputs * self.factor


strategy = tf.distribute.get_strategy()
with strategy.scope():
    scale = Scale()
    optimizer = tf.keras.optimizers.SGD(0.125)


def step():
    with tf.GradientTape() as tape:
        loss = (scale(tf.ones((1, 1))) - 3.0) ** 2 / strategy.num_replicas_in_sync
    optimizer.apply_gradients([(tape.gradient(loss, scale.factor), scale.factor)])


@tf.function
def train_step():
    strategy.run(step)


train_step()
print("factor after one step:", scale.factor.numpy())
