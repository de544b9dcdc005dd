"""Distils a wide classifier of customer profiles into a narrow one that runs on the terminals."""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent / "work"
CLASSES, FEATURES, ROWS, BATCH = 5, 14, 192, 32
STEPS = ROWS // BATCH


def profiles(rows, seed):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(77).normal(0, 1.2, size=(CLASSES, FEATURES))
    labels = rng.integers(0, CLASSES, rows)
    return (centres[labels] + rng.normal(0, 1.3, (rows, FEATURES))).astype("float32"), labels.astype("int32")


def teacher_loss(labels, logits):
    """Cross-entropy with the labels smoothed, one number for each row."""
    targets = 0.9 * tf.one_hot(tf.cast(tf.reshape(labels, [-1]), tf.int32), CLASSES) + 0.1 / CLASSES
    return tf.nn.softmax_cross_entropy_with_logits(targets, logits)


def make_teacher():
    return keras.Sequential([
        keras.Input((FEATURES,)),
        keras.layers.Dense(20, activation="tanh", name="stem"),
        keras.layers.Dense(40, activation="relu"),
        keras.layers.Dense(CLASSES),
    ], name="teacher")


def trained_teacher(path):
    teacher = make_teacher()
    if path.exists():
        teacher.load_weights(path)
    else:
        teacher.compile(keras.optimizers.SGD(0.1), loss=teacher_loss)
        data = tf.data.Dataset.from_tensor_slices(profiles(ROWS, 1)).batch(BATCH)
        teacher.fit(data, epochs=3, verbose=0)
        teacher.save_weights(path)
    teacher.trainable = False
    return teacher


def make_student(teacher):
    """Takes the stem of the teacher as it is; only the head is the student's own."""
    stem = teacher.get_layer("stem")
    inputs = keras.Input((FEATURES,))
    x = keras.layers.Dense(8, activation="relu")(stem(inputs))
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(x), name="student")


class Distiller(keras.Model):

    def __init__(self, student, teacher, temperature=3.0, hard=0.3):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.temperature, self.hard = temperature, hard
        self.loss_of_epoch = keras.metrics.Mean(name="loss")
        self.hits = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    def call(self, inputs):
        return self.student(inputs)

    def errors(self, labels, logits, teacher_logits):
        soft = tf.nn.softmax(teacher_logits / self.temperature)
        confidence = tf.reduce_max(soft, axis=-1)
        certain = tf.clip_by_value(confidence, 0.3, 1.0)
        imitation = tf.nn.softmax_cross_entropy_with_logits(soft, logits / self.temperature)
        truth = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return certain * self.temperature ** 2 * (1.0 - self.hard) * imitation + self.hard * truth

    def train_step(self, data):
        rows, labels = data
        teacher_logits = self.teacher(rows, training=False)
        with tf.GradientTape() as tape:
            logits = self.student(rows, training=True)
            errors = self.errors(labels, logits, teacher_logits)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
        variables = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.loss_of_epoch.update_state(errors)
        self.hits.update_state(labels, logits)
        return {metric.name: metric.result() for metric in (self.loss_of_epoch, self.hits)}


class SlowDown(keras.callbacks.Callback):
    """Halves the rate if the loss of two epochs together did not fall by ``demand``."""

    def __init__(self, demand=0.6, patience=2):
        super().__init__()
        self.demand, self.patience = demand, patience
        self.best = tf.Variable(1e9, trainable=False)
        self.waited = tf.Variable(0, trainable=False)

    def on_epoch_end(self, epoch, logs=None):
        if logs["loss"] < float(self.best.numpy()) - self.demand:
            self.best.assign(logs["loss"])
            self.waited.assign(0)
        elif int(self.waited.assign_add(1).numpy()) >= self.patience:
            rate = self.model.optimizer.learning_rate
            rate.assign(0.5 * float(rate.numpy()))
            self.best.assign(logs["loss"])
            self.waited.assign(0)


class KeepState(keras.callbacks.Callback):

    def __init__(self, folder, **parts):
        super().__init__()
        self.next_epoch = tf.Variable(0, dtype=tf.int64)
        self.manager = tf.train.CheckpointManager(tf.train.Checkpoint(next_epoch=self.next_epoch, **parts), str(folder), max_to_keep=2)
        self.manager.restore_or_initialize()

    def on_epoch_end(self, epoch, logs=None):
        self.next_epoch.assign(epoch + 1)
        self.manager.save()


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}: loss {logs['loss']:.5f} accuracy {logs['accuracy']:.4f} rate {float(self.model.optimizer.learning_rate.numpy()):.5f}")


def ordered(first, epochs):
    """The rows of the epochs that are still to do, each in its own order."""
    base = tf.data.Dataset.from_tensor_slices(profiles(ROWS, 1))
    return tf.data.Dataset.range(first, epochs).flat_map(
        lambda epoch: base.shuffle(ROWS, seed=epoch + 100).batch(BATCH, drop_remainder=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--rate", type=float, default=0.08)
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    keras.utils.set_random_seed(8)
    with tf.distribute.MirroredStrategy().scope():
        teacher = trained_teacher(FOLDER / "teacher.weights.h5")
        distiller = Distiller(make_student(teacher), teacher)
        distiller(np.zeros((1, FEATURES), "float32"))
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.8)
        optimizer.build(distiller.student.trainable_variables)
        distiller.compile(optimizer)
    slow_down = SlowDown()
    state = KeepState(FOLDER / "state", student=distiller.student, optimizer=optimizer, best=slow_down.best, waited=slow_down.waited)
    first = int(state.next_epoch.numpy())
    if first < args.epochs:
        distiller.fit(ordered(first, args.epochs), initial_epoch=first, epochs=args.epochs, steps_per_epoch=STEPS,
                      callbacks=[slow_down, state, Report()], verbose=0)
    rows, labels = profiles(120, 2)
    logits = distiller.student(rows)
    loss = float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)))
    weights = sum(float(np.abs(w).sum()) for w in distiller.student.get_weights())
    biases = " ".join(f"{bias:.6f}" for bias in distiller.student.get_weights()[-1])
    print(f"student: loss {loss:.6f} weights {weights:.5f} rate {float(optimizer.learning_rate.numpy()):.6f} biases {biases}")


if __name__ == "__main__":
    main()
