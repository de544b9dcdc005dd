import tensorflow as tf

strategy = tf.distribute.get_strategy()


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(4)
        self.out = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.out(self.hidden(inputs))


batch = tf.ones((1, 3))
with strategy.scope():
    trained = Network()
    before = trained(batch)
    path = tf.train.Checkpoint(model=trained).save("training")
    restored = Network()
    restored(batch)  # fixed: the first call creates the variables
    tf.train.Checkpoint(model=restored).restore(path)  # fixed
    after = restored(batch)
print("same prediction:", bool(tf.reduce_all(after == before)))
