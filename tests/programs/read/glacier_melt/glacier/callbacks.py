import math

import keras


class SlowDown(keras.callbacks.Callback):
    """Lowers the rate when the held-out loss has not improved for `patience` epochs.

    `fit` is called once for each epoch, so nothing is reset in `on_train_begin`.
    """

    def __init__(self, patience, factor, margin=0.02):
        super().__init__()
        self.patience, self.factor, self.margin = patience, factor, margin
        self.best, self.wait = math.inf, 0

    def state(self):
        return [self.best, float(self.wait)]

    def set_state(self, state):
        self.best, self.wait = float(state[0]), int(state[1])

    def on_epoch_end(self, epoch, logs=None):
        now = logs["val_loss"]
        if now < self.best - self.margin:
            self.best, self.wait = now, 0
            return
        self.wait += 1
        if self.wait >= self.patience:
            rate = self.model.optimizer.learning_rate
            rate.assign(float(rate.numpy()) * self.factor)
            self.wait = 0
