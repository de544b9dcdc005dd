import tensorflow as tf


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


model = make_model()
backup = tf.keras.callbacks.ModelCheckpoint("last.weights.h5", save_weights_only=True)
model.fit(tf.ones((4, 3)), tf.ones((4, 1)), callbacks=[backup], verbose=0)

loaded = tf.keras.models.load_model("last.weights.h5")
print("same bias:", bool(model.get_weights()[1] == loaded.get_weights()[1]))
