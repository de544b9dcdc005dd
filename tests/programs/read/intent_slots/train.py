"""Joint training of intents and slots with accumulated gradients.  python train.py"""
import keras
import numpy as np
import tensorflow as tf

import losses
import settings as config
from accumulate import Accumulator
from commands import Commands
from network import JointNetwork


class JointTraining:

    def __init__(self, settings, strategy):
        self.settings, self.strategy = settings, strategy
        self.options = settings.training
        self.commands = Commands(settings.data)
        with strategy.scope():
            self.network = JointNetwork(settings.data, settings.model)
            self.network(np.ones((1, settings.data.length), np.int32))
            self.variables = self.network.trainable_variables
            self.optimizer = keras.optimizers.SGD(self.options.rate, momentum=self.options.momentum)
            self.optimizer.build(self.variables)
            self.accumulator = Accumulator(self.variables)
        self.micro = tf.Variable(0, dtype=tf.int64)
        self.smoothed = tf.Variable(0.0)
        checkpoint = tf.train.Checkpoint(
            network=self.network, optimizer=self.optimizer, sums=self.accumulator.sums,
            micro=self.micro, smoothed=self.smoothed)
        self.manager = tf.train.CheckpointManager(checkpoint, str(settings.folder), max_to_keep=2)
        self.checkpoint = checkpoint

    def restore(self):
        if self.manager.latest_checkpoint:
            self.checkpoint.restore(self.manager.latest_checkpoint)
            print("restored at micro step", int(self.micro))

    def batch(self, number):
        """The commands of one step, divided among the replicas."""
        whole = self.commands.draw(self.options.batch, number)
        share = self.options.batch // self.strategy.num_replicas_in_sync

        def part(context, array):
            begin = context.replica_id_in_sync_group * share
            return tf.constant(array[begin : begin + share])

        return tuple(
            self.strategy.experimental_distribute_values_from_function(lambda context: part(context, array))
            for array in whole)

    def loss(self, ids, intents, slots):
        intent_scores, slot_scores, _ = self.network(ids)
        keep = tf.cast(ids > 0, tf.float32)
        return (losses.intent_loss(intents, intent_scores, self.options.batch)
                + self.options.slot_weight * losses.slot_loss(slots, slot_scores, keep)
                + losses.weight_loss([self.network.encoder.weights[0]], self.options.weight_cost))

    def collect(self, ids, intents, slots):
        with tf.GradientTape() as tape:
            loss = self.loss(ids, intents, slots) / self.options.accumulate
        gradients = tape.gradient(loss, self.variables)
        self.accumulator.add([
            tf.zeros(v.shape) if g is None else g for g, v in zip(gradients, self.variables)])
        return loss * self.options.accumulate

    def update(self):
        self.optimizer.apply_gradients(zip(self.accumulator.take(), self.variables))

    @tf.function
    def micro_step(self, ids, intents, slots):
        loss = self.strategy.run(self.collect, args=(ids, intents, slots))
        return self.strategy.reduce("SUM", loss, axis=None)

    @tf.function
    def update_step(self):
        self.strategy.run(self.update)

    def run(self):
        options = self.options
        while int(self.micro) < options.micro_steps:
            number = int(self.micro)
            loss = self.micro_step(*self.batch(number))
            if (number + 1) % options.accumulate == 0:
                self.update_step()
            keep = options.smoothing if number else 0.0
            self.smoothed.assign(keep * self.smoothed + (1 - keep) * loss)
            self.micro.assign_add(1)
            if (number + 1) % options.save_every == 0:
                print(f"micro step {number + 1}: loss {float(loss):.4f} smoothed {float(self.smoothed):.4f}")
                self.manager.save(checkpoint_number=number + 1)

    def scores(self, count=80):
        ids, intents, slots = self.commands.draw(count, 1, 2024)
        intent_scores, slot_scores, _ = self.network(ids)
        keep = ids > 0
        intent = float(np.mean(np.argmax(intent_scores, -1) == intents))
        slot = float(np.mean((np.argmax(slot_scores, -1) == slots)[keep]))
        losses_ = tf.nn.sparse_softmax_cross_entropy_with_logits(intents, intent_scores)
        return intent, slot, float(tf.reduce_mean(losses_))


def main():
    settings = config.load()
    keras.utils.set_random_seed(settings.data.seed)
    training = JointTraining(settings, tf.distribute.MirroredStrategy())
    training.restore()
    training.run()
    intent, slot, loss = training.scores()
    print(f"intents right {intent:.3f}, slots right {slot:.3f}")
    weights = sum(np.abs(v.numpy()).sum() for v in training.variables)
    print(f"final: intent loss {loss:.5f} smoothed {float(training.smoothed):.5f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
