"""Everything that has to survive an interruption."""
import tensorflow as tf


class Session:
    def __init__(self, folder, model, optimizer, average, keep=2):
        self.model, self.optimizer = model, optimizer
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.best = tf.Variable(1e9, trainable=False)
        self.bad = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=optimizer,
            average=average.shadow,
            epoch=self.epoch,
            best=self.best,
            bad=self.bad,
        )
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(folder), max_to_keep=keep)

    def resume(self):
        path = self._manager.restore_or_initialize()
        if path:
            print("resumed from", path.rsplit("/", 1)[-1])
        return int(self.epoch.numpy())

    def plateau(self, value, patience, shrink, min_delta):
        """Halves the rate when the held-out loss has not fallen for `patience` epochs."""
        if value < float(self.best.numpy()) - min_delta:
            self.best.assign(value)
            self.bad.assign(0)
            return
        self.bad.assign_add(1)
        if int(self.bad.numpy()) >= patience:
            self.bad.assign(0)
            self.optimizer.learning_rate.assign(self.optimizer.learning_rate * shrink)

    def commit(self, epoch):
        self.epoch.assign(epoch + 1)
        self._manager.save()
