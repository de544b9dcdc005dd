"""What a run must remember, and how it is written."""
import keras
import numpy as np
import tensorflow as tf

from .model import AutoEncoder


class Progress(tf.Module):
    """Counters of the loop over the epochs."""

    def __init__(self):
        super().__init__(name="progress")
        self.epoch = tf.Variable(0, dtype=tf.int64)
        self.best = tf.Variable(np.inf, dtype=tf.float32)
        self.waited = tf.Variable(0, dtype=tf.int64)

    def judge(self, value, config):
        """True if the training should stop."""
        if value < float(self.best.numpy()) - config.min_delta:
            self.best.assign(value)
            self.waited.assign(0)
        else:
            self.waited.assign_add(1)
        return int(self.waited.numpy()) >= config.patience


class RunState:

    def __init__(self, config, strategy):
        self.config = config
        with strategy.scope():
            self.model = AutoEncoder(config)
            self.model(np.zeros((1, config.channels), "float32"))
            self.optimizer = keras.optimizers.SGD(config.learning_rate, momentum=config.momentum)
            self.optimizer.build(self.model.trainable_variables)
            self.typical = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA, name="typical_error")
        self.progress = Progress()
        self.checkpoint = tf.train.Checkpoint(**self.parts())
        self.manager = tf.train.CheckpointManager(self.checkpoint, str(config.path), max_to_keep=2, checkpoint_name="run")
        self.restored = self.manager.restore_or_initialize()

    def parts(self):
        return dict(
            model=self.model,
            optimizer=self.optimizer,
            typical=self.typical,
            progress=self.progress,
        )

    def write(self):
        self.progress.epoch.assign_add(1)
        return self.manager.save()
