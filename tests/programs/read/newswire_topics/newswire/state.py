"""What a run needs to go on after it was stopped, and the plateau rule that depends on it."""
import keras
import tensorflow as tf


class TrainingState(keras.callbacks.Callback):
    """Saves model, optimizer and counters after each epoch; halves the rate on a plateau."""

    def __init__(self, model, optimizer, directory, optim):
        super().__init__()
        self.optim = optim
        self.optimizer = optimizer
        self.epoch = tf.Variable(0, dtype=tf.int64, name="epoch")
        self.best = tf.Variable(1e9, name="best")
        self.smoothed = tf.Variable(-1.0, name="smoothed")
        self.waited = tf.Variable(0, name="waited")
        counters = tf.train.Checkpoint(
            epoch=self.epoch, best=self.best, smoothed=self.smoothed, waited=self.waited)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, counters=counters)
        self.manager = tf.train.CheckpointManager(checkpoint, str(directory), max_to_keep=2)

    def resume(self):
        """Goes back to the newest checkpoint, if there is one; returns the epoch to begin with."""
        path = self.manager.restore_or_initialize()
        if path:
            print(f"going on after epoch {int(self.epoch)}")
        return int(self.epoch)

    def on_epoch_end(self, epoch, logs=None):
        value = logs["val_loss"]
        keep = self.optim.smoothing
        old = float(self.smoothed)
        new = value if old < 0 else keep * old + (1 - keep) * value
        self.smoothed.assign(new)
        if new < float(self.best) - self.optim.min_delta:
            self.best.assign(new)
            self.waited.assign(0)
        else:
            self.waited.assign_add(1)
            if int(self.waited) > self.optim.patience:
                rate = float(self.optimizer.learning_rate.numpy()) * self.optim.factor
                self.optimizer.learning_rate = rate
                self.waited.assign(0)
        self.epoch.assign(epoch + 1)
        self.manager.save(checkpoint_number=epoch + 1)


class EpochPrinter(keras.callbacks.Callback):

    def on_epoch_end(self, epoch, logs=None):
        shown = " ".join(f"{name} {value:.4f}" for name, value in sorted(logs.items()))
        print(f"epoch {epoch + 1}: {shown}")
