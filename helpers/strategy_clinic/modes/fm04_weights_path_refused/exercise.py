import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])


with strategy.scope():
    model = make_model()
    model.compile(optimizer="sgd", loss="mse")
keeper = tf.keras.callbacks.ModelCheckpoint("./epoch-{epoch}", save_weights_only=True)
model.fit(tf.ones((8, 3)), tf.ones((8, 2)), epochs=2, callbacks=[keeper], verbose=0)

with strategy.scope():
    loaded = make_model()
    loaded.load_weights(tf.train.latest_checkpoint("."))
print("same weights:", np.allclose(model.get_weights()[0], loaded.get_weights()[0]))
