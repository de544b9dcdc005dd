"""Training, validation and the bookkeeping between them."""
import logging

import keras
import numpy as np
import tensorflow as tf

from network import batch_loss, build_network, per_example_loss

log = logging.getLogger("defects")


class Trainer:

    def __init__(self, settings, strategy, pipeline):
        self.settings, self.strategy, self.pipeline = settings, strategy, pipeline
        with strategy.scope():
            self.model = build_network(settings)
            schedule = keras.optimizers.schedules.CosineDecayRestarts(
                settings.base_rate, first_decay_steps=settings.first_cycle * settings.steps_per_epoch, alpha=0.02)
            self.optimizer = keras.optimizers.SGD(schedule, momentum=settings.momentum, nesterov=True)
            self.optimizer.build(self.model.trainable_variables)
        self.epoch = tf.Variable(0, dtype=tf.int64, name="epoch")
        self.best_loss = tf.Variable(np.inf, dtype=tf.float32, name="best_loss")
        self.best_epoch = tf.Variable(-1, dtype=tf.int64, name="best_epoch")
        self.checkpoint = tf.train.Checkpoint(
            model=self.model,
            optimizer=self.optimizer,
            epoch=self.epoch,
            best_loss=self.best_loss,
            best_epoch=self.best_epoch,
        )
        self.manager = tf.train.CheckpointManager(
            self.checkpoint, str(settings.workdir / "checkpoints"), max_to_keep=settings.keep)
        self.best_path = settings.workdir / "best.weights.h5"

    def resume(self):
        latest = self.manager.latest_checkpoint
        if latest is None:
            log.info("a new run")
            return
        self.checkpoint.restore(latest).assert_consumed()
        log.info("goes on after epoch %d", int(self.epoch.numpy()))

    @tf.function
    def train_step(self, images, labels):
        def replica_step(images, labels):
            with tf.GradientTape() as tape:
                logits = self.model(images, training=True)
                loss = batch_loss(labels, logits, self.settings)
            variables = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss
        losses = self.strategy.run(replica_step, args=(images, labels))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def valid_step(self, images, labels):
        def replica_step(images, labels):
            logits = self.model(images, training=False)
            errors = per_example_loss(labels, logits, self.settings)
            hits = tf.cast(tf.equal(tf.argmax(logits, -1, output_type=tf.int32), labels), tf.float32)
            return tf.stack([tf.reduce_sum(errors), tf.reduce_sum(hits), tf.cast(tf.size(labels), tf.float32)])
        sums = self.strategy.run(replica_step, args=(images, labels))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    def validate(self):
        totals = np.zeros(3)
        for images, labels in self.pipeline.for_validation():
            totals += self.valid_step(images, labels).numpy()
        return totals[0] / totals[2], totals[1] / totals[2]

    def train_epoch(self, epoch):
        losses = []
        for images, labels in self.pipeline.for_epoch(epoch):
            losses.append(float(self.train_step(images, labels)))
        return sum(losses) / len(losses)

    def fit(self):
        self.resume()
        for epoch in range(int(self.epoch.numpy()), self.settings.epochs):
            train_loss = self.train_epoch(epoch)
            valid_loss, accuracy = self.validate()
            if valid_loss < float(self.best_loss.numpy()):
                self.best_loss.assign(valid_loss)
                self.best_epoch.assign(epoch)
                self.model.save_weights(self.best_path)
            self.epoch.assign(epoch + 1)
            self.manager.save()
            print(f"epoch {epoch + 1}/{self.settings.epochs}: train {train_loss:.5f} "
                  f"valid {valid_loss:.5f} accuracy {accuracy:.4f}")
        last = float(sum(np.abs(w).sum() for w in self.model.get_weights()))
        last_loss, _ = self.validate()
        self.model.load_weights(self.best_path)
        valid_loss, accuracy = self.validate()
        print(f"result: best loss {valid_loss:.6f} accuracy {accuracy:.5f} last loss {last_loss:.6f} last weights {last:.5f}")
