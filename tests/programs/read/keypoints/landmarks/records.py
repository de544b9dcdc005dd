"""What a run has to remember from one start to the next."""
import tensorflow as tf


class Records(tf.Module):
    """Counters of the run, with the best error so far."""

    def __init__(self):
        super().__init__()
        self.epoch = tf.Variable(0, trainable=False)
        self.best = tf.Variable(1e6, trainable=False)
        self.stale = tf.Variable(0, trainable=False)
        self.heat = tf.Variable(1.0, trainable=False)

    def judge(self, error, needed_gain, cool_by):
        """Notes the error of an epoch; returns whether it is the best one."""
        if error < float(self.best) * (1 - needed_gain):
            self.best.assign(error)
            self.stale.assign(0)
            return True
        self.stale.assign_add(1)
        self.heat.assign(self.heat * cool_by)
        return False


class Keeper:
    """Checkpoints of everything, and the best weights in a file of their own."""

    def __init__(self, folder, **what):
        folder.mkdir(parents=True, exist_ok=True)
        self.best_file = str(folder / "best.weights.h5")
        self.checkpoint = tf.train.Checkpoint(**what)
        self.manager = tf.train.CheckpointManager(self.checkpoint, str(folder / "steps"), max_to_keep=2)

    def load(self):
        newest = self.manager.latest_checkpoint
        if newest is None:
            return False
        self.checkpoint.restore(newest)
        return True

    def store(self):
        self.manager.save()

    def store_best(self, network):
        network.save_weights(self.best_file)
