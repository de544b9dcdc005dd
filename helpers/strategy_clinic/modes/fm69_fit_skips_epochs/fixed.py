import tensorflow as tf

strategy = tf.distribute.get_strategy()
x = tf.ones((8, 1))


def start(epochs):
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    backup = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    model.fit(x, 2 * x, epochs=epochs, verbose=0, callbacks=[backup])
    return model


start(4)  # the first run ends after four epochs
model = start(6)  # the second run continues with the fifth
model.save("trained.keras")  # fixed
with strategy.scope():  # fixed
    model = tf.keras.models.load_model("trained.keras")  # fixed: a model that skips no epoch
model.fit(x, 3 * x, epochs=3, verbose=0)  # fixed: it begins with epoch 0
print("epochs on new labels:", len(model.history.epoch))
