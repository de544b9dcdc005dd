import tensorflow as tf


class Block(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(3)

    def call(self, inputs):
        return inputs + self.dense(inputs)


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def call(self, inputs):
        return tf.reduce_sum(self.block(inputs))


def manager_of(model):
    return tf.train.CheckpointManager(tf.train.Checkpoint(model=model), "saved", max_to_keep=1)


batch = tf.ones((1, 3))
stopped = Network()
before = stopped(batch)
manager_of(stopped).save()
restarted = Network()
restarted.build((1, 3))
manager_of(restarted).restore_or_initialize()
print("same after the restart:", bool(restarted(batch) == before))
