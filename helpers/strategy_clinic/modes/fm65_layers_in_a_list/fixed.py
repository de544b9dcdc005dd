import tensorflow as tf

strategy = tf.distribute.get_strategy()
batch = tf.ones((1, 3))


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        layers = [tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)]
        self.blocks = tuple(layers)  # fixed

    def call(self, inputs):
        for layer in self.blocks:
            inputs = layer(inputs)
        return inputs


with strategy.scope():
    trained, restored = Network(), Network()
before, _ = trained(batch), restored(batch)
path = tf.train.Checkpoint(model=trained).save("saved/training")
tf.train.Checkpoint(model=restored).restore(path).assert_consumed()
print("same after restoring:", bool(restored(batch) == before))
