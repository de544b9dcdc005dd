#!/usr/bin/env python3
"""Distils a wide network that sorts stars by their spectra into a narrow one.

First the teacher is trained, then the student on its softened answers; the student that is used is an average over the
steps. `state.json` says how far it is and which files belong to that; both stages go on where they were stopped.
"""
import json
import os

import keras
import numpy as np
import tensorflow as tf

FOLDER = "stars"
CLASSES, BANDS, BATCH = 5, 12, 40
EPOCHS = {"teacher": 4, "student": 5}
SOFT, HARD = 3.0, 0.3  # the temperature, and the share of the true labels
KEEP = 0.9

keras.utils.set_random_seed(77)
strategy = tf.distribute.MirroredStrategy()


def spectra(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, CLASSES, count)
    lines = np.random.default_rng(5).normal(size=(CLASSES, BANDS))
    x = lines[kind] * rng.uniform(0.3, 1.2, (count, 1)) + 0.8 * rng.normal(size=(count, BANDS))
    return x.astype("float32"), kind.astype("int32")


def network(units, name):
    return keras.Sequential([
        keras.Input((BANDS,)),
        keras.layers.Dense(units, "relu", name=f"{name}_hidden"),
        keras.layers.Dense(CLASSES, name=f"{name}_classes"),
    ], name=name)


def path(file):
    return os.path.join(FOLDER, file)


def load_state():
    if os.path.exists(path("state.json")):
        with open(path("state.json")) as file:
            return json.load(file)
    return {"teacher": 0, "student": 0, "losses": [], "files": {}}


def save_state(state, stage, checkpoint):
    """The checkpoint first: a state that is there belongs to files that are there."""
    os.makedirs(FOLDER, exist_ok=True)
    state["files"][stage] = checkpoint.write(path(f"{stage}-{state[stage]}"))
    with open(path("state.tmp"), "w") as file:
        json.dump(state, file)
    os.replace(path("state.tmp"), path("state.json"))


def batches(data, epoch):
    dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(len(data[1]), seed=100 + epoch)
    return strategy.experimental_distribute_dataset(dataset.batch(BATCH, drop_remainder=True))


def cross_entropy(x, kind):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(kind, model(x, training=True))


def distilled(x, kind):
    logits = model(x, training=True)
    targets = tf.nn.softmax(tf.stop_gradient(teacher(x)) / SOFT)
    soft = tf.nn.softmax_cross_entropy_with_logits(targets, logits / SOFT) * SOFT**2
    return HARD * tf.nn.sparse_softmax_cross_entropy_with_logits(kind, logits) + (1 - HARD) * soft


def make_step(losses_of):
    """A step for the model and the optimizer that these names stand for now."""

    def replica(x, kind):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(losses_of(x, kind), global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def step(x, kind):
        return strategy.reduce("SUM", strategy.run(replica, args=(x, kind)), axis=None)

    return step


def train(stage, step, checkpoint, state, data, after_step=lambda: None):
    for epoch in range(state[stage], EPOCHS[stage]):
        total = 0.0
        for number, batch in enumerate(batches(data, epoch), 1):
            total += float(step(*batch))
            after_step()
        state[stage] = epoch + 1
        state["losses"].append(total / number)
        print(f"{stage} epoch {epoch + 1}/{EPOCHS[stage]} loss {total / number:.4f}")
        save_state(state, stage, checkpoint)


def accuracy(network, data):
    return float(np.mean(np.argmax(network(data[0]), 1) == data[1]))


train_data, test_data = spectra(400, 1), spectra(500, 2)
state = load_state()

with strategy.scope():
    teacher = model = network(48, "teacher")
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
checkpoint = tf.train.Checkpoint(model=teacher, optimizer=optimizer)
if "teacher" in state["files"]:
    checkpoint.read(state["files"]["teacher"]).assert_consumed()
step = make_step(cross_entropy)
train("teacher", step, checkpoint, state, train_data)

with strategy.scope():
    model, average = network(6, "student"), network(6, "average")
    average.set_weights(model.get_weights())
    optimizer = keras.optimizers.SGD(0.03, momentum=0.9)
    optimizer.build(model.trainable_variables)
checkpoint = tf.train.Checkpoint(model=model, average=average, optimizer=optimizer)
if "student" in state["files"]:
    checkpoint.read(state["files"]["student"]).assert_consumed()


def follow():
    for mean, weight in zip(average.variables, model.variables):
        mean.assign(KEEP * mean + (1 - KEEP) * weight)


step = make_step(distilled)
train("student", step, checkpoint, state, train_data, follow)

answers = tf.nn.softmax(average(test_data[0])).numpy()
print(f"teacher {accuracy(teacher, test_data):.4f}, student {accuracy(average, test_data):.4f}, "
      f"sure {answers.max(1).mean():.4f}, losses {state['losses'][0]:.4f} to {state['losses'][-1]:.4f}, "
      f"mean {np.mean(state['losses']):.4f}")
