import keras


class WarmUp(keras.callbacks.Callback):
    """The rate grows for some epochs, and then falls by a tenth with each."""

    def __init__(self, rate, epochs):
        super().__init__()
        self.rate, self.epochs = rate, epochs

    def on_epoch_begin(self, epoch, logs=None):
        grown = min(1.0, (epoch + 1) / self.epochs)
        fallen = 0.9 ** max(0, epoch + 1 - self.epochs)
        self.model.optimizer.learning_rate = self.rate * grown * fallen


class Lines(keras.callbacks.Callback):
    def __init__(self, phase):
        super().__init__()
        self.phase = phase

    def on_epoch_end(self, epoch, logs=None):
        print(f"{self.phase} {epoch + 1}: loss {logs['loss']:.5f} words right {logs['words_right']:.4f}")
