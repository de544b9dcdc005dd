"""A large network learns to read signs, and a small one learns from it.

    python distill.py --teacher-epochs 4 --student-epochs 5
"""
import argparse

import keras
import numpy as np
import tensorflow as tf
from networks import KINDS, LENGTH, SIGNS, Distiller, Teacher, make_student

BATCH = 32


def lines(count, seed):
    """A line of signs is of the kind whose pair of signs stands in it."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, SIGNS, (count, LENGTH))
    kinds = rng.integers(0, KINDS, count)
    for line, kind in zip(signs, kinds):
        place = rng.integers(0, LENGTH - 2)
        line[[place, place + 2]] = 3 * kind + 1, 3 * kind + 2
    return np.int32(signs), np.int32(kinds)


def batches(table):
    return tf.data.Dataset.from_tensor_slices(table).batch(BATCH, drop_remainder=True)


def teach_teacher(strategy, table, epochs):
    with strategy.scope():
        teacher = Teacher()
        teacher.compile(
            keras.optimizers.SGD(0.15, momentum=0.9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    told = teacher.fit(batches(table), epochs=epochs, verbose=0).history
    print(f"teacher: loss {told['loss'][-1]:.5f} accuracy {told['accuracy'][-1]:.4f}")
    return tf.train.Checkpoint(model=teacher).save("teacher/weights")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--teacher-epochs", type=int, default=4)
    parser.add_argument("--student-epochs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.4)
    args = parser.parse_args()

    train, test = lines(384, seed=1), lines(128, seed=2)
    strategy = tf.distribute.MirroredStrategy()
    kept = teach_teacher(strategy, train, args.teacher_epochs)

    steps = args.student_epochs * len(train[0]) // BATCH
    with strategy.scope():
        teacher = Teacher()
        teacher(tf.zeros((1, LENGTH), tf.int32))
        tf.train.Checkpoint(model=teacher).restore(kept).expect_partial()
        distiller = Distiller(make_student(), teacher)
        schedule = keras.optimizers.schedules.CosineDecay(args.rate, steps)
        distiller.compile(optimizer=keras.optimizers.SGD(schedule))
    told = distiller.fit(batches(train), epochs=args.student_epochs, verbose=0).history
    for epoch, (loss, right) in enumerate(zip(told["distilled"], told["right"]), 1):
        print(f"student {epoch}: loss {loss:.5f} right {right:.4f}")

    distiller.student.save("student.keras")
    student = keras.models.load_model("student.keras", compile=False)
    answers = student.predict(test[0], batch_size=BATCH, verbose=0)
    taught = teacher.predict(test[0], batch_size=BATCH, verbose=0)
    agree = float(np.mean(answers.argmax(-1) == taught.argmax(-1)))
    result = distiller.evaluate(batches(test), verbose=0, return_dict=True)
    heat = float(keras.ops.convert_to_numpy(distiller.temperature()))
    print(f"distilled {told['distilled'][-1]:.5f} test {result['distilled']:.5f} right {result['right']:.4f} "
          f"agree {agree:.4f} heat {heat:.5f} size {np.abs(answers).mean():.5f}")


if __name__ == "__main__":
    main()
