import tensorflow as tf

strategy = tf.distribute.get_strategy()
x = tf.ones((32, 1))


def start(epochs):
    with strategy.scope():
        dense = tf.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)
        model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
        model.compile(tf.keras.optimizers.SGD(0.125), "mse")
    backup = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    best = tf.keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True)  # wrong: no value
    model.fit(x, 2 * x, epochs=epochs, validation_data=(x, x), verbose=0, callbacks=[backup, best])


start(4)  # the first run ends after four epochs
start(6)  # the second run continues with the fifth
loaded = tf.keras.models.load_model("best.keras")
print("validation loss of best.keras:", round(loaded.evaluate(x, x, verbose=0), 3))
