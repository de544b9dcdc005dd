import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])


with strategy.scope():
    model = make_model()
    model.compile(optimizer="sgd", loss="mse")
model.fit(tf.ones((8, 3)), tf.ones((8, 2)), verbose=0)
model.save_weights("./my_checkpoint")  # wrong: Keras 3 wants .weights.h5

with strategy.scope():
    loaded = make_model()
    loaded.load_weights("./my_checkpoint")  # wrong
print("same weights:", np.allclose(model.get_weights()[0], loaded.get_weights()[0]))
