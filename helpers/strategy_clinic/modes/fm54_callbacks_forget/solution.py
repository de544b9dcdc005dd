import tensorflow as tf

strategy = tf.distribute.get_strategy()
x = tf.ones((32, 1))


class Remembering(tf.keras.callbacks.EarlyStopping):
    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if tf.io.gfile.exists("stopping.txt"):
            self.best, self.wait = map(float, tf.io.read_file("stopping.txt").numpy().split())

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.best is not None:
            tf.io.write_file("stopping.txt", f"{self.best} {self.wait}")


def start(epochs):
    with strategy.scope():
        dense = tf.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)
        model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
        model.compile(tf.keras.optimizers.SGD(0.125), "mse")
    backup = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    early = Remembering("val_loss", patience=3)
    model.fit(x, 2 * x, epochs=epochs, validation_data=(x, x), verbose=0, callbacks=[backup, early])
    return int(model.optimizer.iterations.numpy())  # one step in each epoch


start(4)
print("epochs in all:", start(20))
