import tensorflow as tf

batch = tf.ones((1, 3))


class Heads(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.heads = {"mean": tf.keras.layers.Dense(1), "width": tf.keras.layers.Dense(1)}

    def call(self, inputs):
        return tf.concat([head(inputs) for head in self.heads.values()], axis=1)


def make_model():
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, Heads()(inputs))


trained = make_model()
path = tf.train.Checkpoint(trained).save("saved/training")
restored = make_model()
tf.train.Checkpoint(restored).restore(path).assert_existing_objects_matched()
same = tf.reduce_all(restored(batch) == trained(batch))
print("both models agree:", bool(same))
