"""Knowledge distillation for short sensor sequences.

Phase one trains a wide teacher on the labels; phase two trains a narrow student on the labels and on the
teacher's softened predictions. The student looks at the readings through the teacher's (frozen) embedding of
the sensor codes. Both phases can be interrupted: everything that matters is in one checkpoint.

    python distill.py --config default
    python distill.py --config quick
"""
import argparse
import dataclasses
import os
import sys

import numpy as np
import tensorflow as tf
import keras

BASE = os.path.abspath(os.path.dirname(__file__))


@dataclasses.dataclass(frozen=True)
class Settings:
    teacher_epochs: int = 3
    student_epochs: int = 4
    global_batch: int = 20
    examples: int = 120
    held_out: int = 40
    length: int = 10
    codes: int = 12
    classes: int = 4
    embed: int = 8
    teacher_units: int = 24
    student_units: int = 8
    teacher_rate: float = 0.05
    student_rate: float = 0.01
    first_temperature: float = 4.0
    last_temperature: float = 1.5
    soft_share: float = 0.7
    decay_every: int = 2
    decay_by: float = 0.4
    seed: int = 17


CONFIGS = {"default": Settings(), "quick": Settings(teacher_epochs=2, student_epochs=3)}


# -- data -------------------------------------------------------------------------------------------------

def sequences(settings, count, seed):
    """Every class prefers some of the codes; readings scale how loudly a code speaks."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, settings.classes, count)
    taste = np.random.default_rng(settings.seed).dirichlet(np.full(settings.codes, 0.4), settings.classes)
    codes = np.stack([rng.choice(settings.codes, settings.length, p=taste[c]) for c in labels])
    readings = rng.gamma(2.0, 0.5, codes.shape)
    return codes.astype("int32"), readings.astype("float32"), labels.astype("int32")


class Feed:
    def __init__(self, settings, strategy):
        self.settings, self.strategy = settings, strategy
        self.train = sequences(settings, settings.examples, settings.seed + 1)
        self.test = sequences(settings, settings.held_out, settings.seed + 2)

    def _distribute(self, arrays):
        data = tf.data.Dataset.from_tensor_slices(arrays).batch(self.settings.global_batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def training(self, phase, epoch):
        order = np.random.default_rng((self.settings.seed, phase, epoch)).permutation(self.settings.examples)
        return self._distribute(tuple(a[order] for a in self.train))

    def testing(self):
        return self._distribute(self.test)


# -- networks ---------------------------------------------------------------------------------------------

class CodeReader(keras.Model):
    """Weighted bag of code embeddings with a hidden layer on top."""

    def __init__(self, settings, units, embedding=None, **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding or keras.layers.Embedding(settings.codes, settings.embed)
        self.mix = keras.layers.Dense(units, activation="gelu")
        self.out = keras.layers.Dense(settings.classes)

    def call(self, inputs):
        codes, readings = inputs
        spoken = self.embedding(codes) * readings[..., None]
        return self.out(self.mix(tf.reduce_sum(spoken, axis=1)))


# -- distillation -----------------------------------------------------------------------------------------

class Distiller:
    TEACHER, STUDENT, FINISHED = range(3)

    def __init__(self, settings, strategy):
        self.settings, self.strategy = settings, strategy
        self.feed = Feed(settings, strategy)
        example = (np.zeros((1, settings.length), "int32"), np.zeros((1, settings.length), "float32"))
        with strategy.scope():
            self.teacher = CodeReader(settings, settings.teacher_units, name="teacher")
            self.teacher(example)
            self.student = CodeReader(settings, settings.student_units, embedding=self.teacher.embedding, name="student")
            self.student(example)
            self.teacher_optimizer = keras.optimizers.SGD(settings.teacher_rate, momentum=0.9)
            self.teacher_optimizer.build(self.teacher.trainable_variables)
            self.student_optimizer = keras.optimizers.SGD(settings.student_rate, momentum=0.8, nesterov=True)
            self.student_optimizer.build(self.student_weights)
        self.phase = tf.Variable(self.TEACHER, trainable=False)
        self.epoch = tf.Variable(0, trainable=False)
        self.best = tf.Variable(0.0, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            teacher=self.teacher, student=self.student,
            teacher_optimizer=self.teacher_optimizer, student_optimizer=self.student_optimizer,
            phase=self.phase, epoch=self.epoch, best=self.best)
        self.manager = tf.train.CheckpointManager(self.checkpoint, os.path.join(BASE, "out", "distill"), max_to_keep=2)
        self.train_step = tf.function(self._train_step)
        self.soft_step = tf.function(self._soft_step)
        self.test_step = tf.function(self._test_step)

    @property
    def student_weights(self):
        """What the student may change: its own layers, not the embedding that it borrows."""
        return self.student.mix.trainable_variables + self.student.out.trainable_variables

    def mean(self, values):
        return tf.reduce_sum(values) / self.settings.global_batch

    def hard_loss(self, labels, logits):
        return self.mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    def soft_loss(self, teacher_logits, student_logits, temperature):
        wanted = tf.nn.softmax(teacher_logits / temperature)
        given = tf.nn.log_softmax(student_logits / temperature)
        divergence = tf.reduce_sum(wanted * (tf.math.log(wanted + 1e-9) - given), axis=-1)
        return temperature ** 2 * self.mean(divergence)

    def _train_step(self, *batch):
        def learn(codes, readings, labels):
            weights = self.teacher.trainable_variables
            with tf.GradientTape() as tape:
                loss = self.hard_loss(labels, self.teacher((codes, readings), training=True))
            self.teacher_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        return self.strategy.reduce("SUM", self.strategy.run(learn, args=batch), axis=None)

    def _soft_step(self, temperature, *batch):
        share = self.settings.soft_share

        def learn(codes, readings, labels):
            taught = self.teacher((codes, readings), training=False)
            with tf.GradientTape() as tape:
                logits = self.student((codes, readings), training=True)
                hard, soft = self.hard_loss(labels, logits), self.soft_loss(taught, logits, temperature)
                loss = (1 - share) * hard + share * soft
            weights = self.student_weights
            self.student_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        return self.strategy.reduce("SUM", self.strategy.run(learn, args=batch), axis=None)

    def _test_step(self, *batch):
        def hits(codes, readings, labels):
            found = [tf.argmax(net((codes, readings)), axis=-1, output_type=tf.int32) for net in (self.teacher, self.student)]
            return [tf.reduce_sum(tf.cast(f == labels, tf.float32)) for f in found]

        return [self.strategy.reduce("SUM", h, axis=None) for h in self.strategy.run(hits, args=batch)]

    def accuracies(self):
        total = np.zeros(2)
        for batch in self.feed.testing():
            total += [float(h) for h in self.test_step(*batch)]
        return total / self.settings.held_out

    def temperature(self, epoch):
        s = self.settings
        return s.first_temperature + (s.last_temperature - s.first_temperature) * epoch / max(1, s.student_epochs - 1)

    def finish_epoch(self, title, losses, optimizer):
        """Bookkeeping after an epoch: accuracy, step size, checkpoint."""
        teacher, student = self.accuracies()
        self.best.assign(max(float(self.best), student))
        self.epoch.assign_add(1)
        if int(self.epoch) % self.settings.decay_every == 0:
            optimizer.learning_rate.assign(optimizer.learning_rate * self.settings.decay_by)
        print(f"{title} epoch {int(self.epoch)}: loss {np.mean(losses):.4f} teacher {teacher:.3f} student {student:.3f}")

    def enter(self, phase):
        self.phase.assign(phase)
        self.epoch.assign(0)

    def run(self):
        self.manager.restore_or_initialize()
        losses = [0.0]
        while int(self.phase) == self.TEACHER:
            losses = [float(self.train_step(*b)) for b in self.feed.training(self.TEACHER, int(self.epoch))]
            self.finish_epoch("teacher", losses, self.teacher_optimizer)
            if int(self.epoch) == self.settings.teacher_epochs:
                self.enter(self.STUDENT)
            self.manager.save()
        while int(self.phase) == self.STUDENT:
            temperature = tf.constant(self.temperature(int(self.epoch)), tf.float32)
            batches = self.feed.training(self.STUDENT, int(self.epoch))
            losses = [float(self.soft_step(temperature, *b)) for b in batches]
            self.finish_epoch("student", losses, self.student_optimizer)
            if int(self.epoch) == self.settings.student_epochs:
                self.enter(self.FINISHED)
            self.manager.save()
        return float(np.mean(losses))


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", choices=sorted(CONFIGS), default="default")
    settings = CONFIGS[parser.parse_args(argv).config]
    keras.utils.set_random_seed(settings.seed)
    distiller = Distiller(settings, tf.distribute.MirroredStrategy())
    loss = distiller.run()
    sums = [sum(float(tf.reduce_sum(tf.abs(w))) for w in ws) for ws in (distiller.teacher.weights, distiller.student_weights)]
    print(f"final loss {loss:.6f} best {float(distiller.best):.5f} teacher {sums[0]:.5f} student {sums[1]:.5f}")


if __name__ == "__main__":
    main(sys.argv[1:])
