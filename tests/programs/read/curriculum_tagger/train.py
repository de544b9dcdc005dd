"""Trains a tagger on sentences that grow longer from stage to stage."""
import os
import sys

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from corpus import CURRICULUM, LONGEST, TAGS, Corpus
from progress import Keeper
from tagger import Tagger, mean_over_tokens, token_losses

FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", 8, "epochs over all stages")
flags.DEFINE_integer("batch", 16, "sentences in a step, on all devices together")
flags.DEFINE_string("folder", os.path.join(os.path.dirname(os.path.abspath(__file__)), "progress"), "where progress is kept")


class Teacher:
    def __init__(self, batch, folder):
        self.batch = batch
        self.corpus = Corpus()
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = Tagger()
            self.optimizer = keras.optimizers.SGD(CURRICULUM[0].rate, momentum=0.8)
            self.log_prior = tf.Variable(tf.zeros(TAGS), trainable=False)
        self.keeper = Keeper(folder, model=self.model, optimizer=self.optimizer, log_prior=self.log_prior)
        self.build()
        self.progress = self.keeper.load()

    def build(self):
        with self.strategy.scope():
            self.model(tf.zeros((1, LONGEST), tf.int32))
            self.optimizer.build(self.model.trainable_variables)

    def _learn(self, words, tags):
        with tf.GradientTape() as tape:
            losses, mask = token_losses(tags, self.model(words), words, self.log_prior)
            loss = mean_over_tokens(losses, mask)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    @tf.function
    def learn(self, words, tags):
        return self.strategy.reduce("SUM", self.strategy.run(self._learn, args=(words, tags)), axis=None)

    def _judge(self, words, tags):
        logits = self.model(words)
        losses, mask = token_losses(tags, logits, words, 0.0)
        right = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), tags), tf.float32) * mask
        return tf.reduce_sum(losses, axis=1), tf.reduce_sum(right, axis=1), tf.reduce_sum(mask, axis=1)

    @tf.function
    def judge(self, words, tags):
        """Sums for each sentence of the global batch."""
        return tuple(self.strategy.gather(part, axis=0) for part in self.strategy.run(self._judge, args=(words, tags)))

    def distribute(self, arrays):
        return self.strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(arrays).batch(self.batch))

    def test(self):
        sums = np.zeros(3)
        for words, tags in self.distribute(self.corpus.test[:2]):
            sums += [part.numpy().sum() for part in self.judge(words, tags)]
        return sums[0] / sums[2], sums[1] / sums[2]

    def train_epoch(self):
        stage = CURRICULUM[self.progress.stage]
        losses, counts = [], np.zeros(TAGS)
        for words, tags in self.corpus.epoch(self.progress.epoch, stage, self.batch):
            for share in self.distribute((words, tags)):
                losses.append(float(self.learn(*share)))
            counts += np.bincount(tags[words > 0], minlength=TAGS)
        prior = np.log((counts + 1.0) / (counts + 1.0).sum())
        self.log_prior.assign(0.7 * self.log_prior + 0.3 * prior.astype("float32"))
        return float(np.mean(losses))

    def promote(self):
        self.progress.in_stage += 1
        if self.progress.in_stage >= CURRICULUM[self.progress.stage].epochs:
            self.progress.stage, self.progress.in_stage = self.progress.stage + 1, 0
            self.optimizer.learning_rate.assign(CURRICULUM[self.progress.stage].rate)

    def teach(self, epochs):
        progress = self.progress
        if progress.epoch:
            print(f"going on with epoch {progress.epoch + 1}, stage {progress.stage + 1}")
        while progress.epoch < epochs:
            loss = self.train_epoch()
            test, accuracy = self.test()
            print(f"epoch {progress.epoch + 1} stage {progress.stage + 1}: loss {loss:.5f} test {test:.5f} accuracy {accuracy:.4f}")
            if test < progress.best:
                progress.best, progress.best_epoch = float(test), progress.epoch
            progress.epoch += 1
            self.promote()
            self.keeper.save(progress)
        return self.test()[0]


def main(argv):
    del argv
    teacher = Teacher(FLAGS.batch, FLAGS.folder)
    test = teacher.teach(FLAGS.epochs)
    size = sum(float(np.abs(w).sum()) for w in teacher.model.get_weights())
    print(f"test {test:.6f} best {teacher.progress.best:.6f} size {size:.5f}")


if __name__ == "__main__":
    app.run(main, sys.argv)
