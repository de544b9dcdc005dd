import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model(units=8):  # wrong: the weights were saved with 4 units
    hidden = tf.keras.layers.Dense(units, kernel_initializer="ones", name="hidden")
    layers = [tf.keras.Input((1,)), hidden, tf.keras.layers.Dense(1, name="score")]
    return tf.keras.Sequential(layers)


with strategy.scope():
    model = make_model(units=4)  # as it was last week
    tf.train.Checkpoint(model=model).save("saved/checkpoint")

    loaded = make_model()
    tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))
x = tf.constant([[0.5], [1.0]])
print("same predictions:", np.allclose(model(x), loaded(x)))
