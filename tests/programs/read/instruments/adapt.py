"""Calibrates a second spectrometer without reference values: an encoder that a critic cannot tell the two apart by.

The first phase trains the encoder and the critic in turn. The second one starts from the end of the first, with a small
rate and the means of the weights."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tensorflow as tf
from tensorflow.keras import Input, Model, layers, optimizers

config = SimpleNamespace(**json.loads(Path(__file__).with_name("config.json").read_text()))
strategy = tf.distribute.MirroredStrategy()


def spectra(count, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    content = rng.uniform(0.0, 1.0, (count, 2))
    place = np.linspace(0, 1, config.channels)
    peaks = [np.exp(-(((place - at - shift) / 0.1) ** 2)) for at in (0.3, 0.6)]
    spectrum = content @ np.stack(peaks) + 0.3 * shift + rng.normal(0, 0.05, (count, config.channels))
    return spectrum.astype("float32"), content[:, :1].astype("float32")


def encoder_and_head():
    spectrum = Input((config.channels,))
    hidden = layers.Dense(20, activation="elu")(spectrum)
    features = layers.Dense(config.features, activation="tanh")(hidden)
    return Model(spectrum, [features, layers.Dense(1)(features)])


def critic_of_features():
    features = Input((config.features,))
    hidden = layers.Dense(16, activation="elu")(features)
    return Model(features, layers.Dense(1)(hidden))


tf.keras.utils.set_random_seed(41)
with strategy.scope():
    encoder, critic = encoder_and_head(), critic_of_features()
    encoder_optimizer = optimizers.SGD(config.rate, momentum=0.9)
    critic_optimizer = optimizers.SGD(config.critic_rate, momentum=0.9)
    encoder_optimizer.build(encoder.trainable_variables)
    critic_optimizer.build(critic.trainable_variables)
    means = [
        tf.Variable(w, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        for w in encoder.trainable_variables
    ]
epoch, strength = tf.Variable(0), tf.Variable(config.strength)
everything = tf.train.Checkpoint(
    encoder=encoder,
    critic=critic,
    encoder_optimizer=encoder_optimizer,
    critic_optimizer=critic_optimizer,
    means=means,
    epoch=epoch,
    strength=strength,
)
manager = tf.train.CheckpointManager(everything, "phases", max_to_keep=None)


def over_the_batch(losses):
    return tf.reduce_sum(losses) / config.batch


def cross_entropy(logits, is_second):
    labels = tf.fill(tf.shape(logits), float(is_second))
    return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)[:, 0]


def critic_step(first, second):
    with tf.GradientTape() as tape:
        of_first = cross_entropy(critic(encoder(first)[0]), False)
        of_second = cross_entropy(critic(encoder(second)[0]), True)
        loss = over_the_batch(of_first) + over_the_batch(of_second)
    gradients = tape.gradient(loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
    return loss


def encoder_step(first, content, second):
    with tf.GradientTape() as tape:
        guess = encoder(first)[1]
        errors = tf.reduce_sum(tf.square(guess - content), axis=-1)
        deceived = cross_entropy(critic(encoder(second)[0]), False)
        loss = over_the_batch(errors) + strength * over_the_batch(deceived)
    gradients = tape.gradient(loss, encoder.trainable_variables)
    encoder_optimizer.apply_gradients(zip(gradients, encoder.trainable_variables))
    for mean, weight in zip(means, encoder.trainable_variables):
        mean.assign(config.decay * mean + (1.0 - config.decay) * weight)
    return over_the_batch(errors)


@tf.function
def train(reference, other):
    first, content = reference
    strategy.run(critic_step, args=(first, other))
    losses = strategy.run(encoder_step, args=(first, content, other))
    return strategy.reduce("SUM", losses, axis=None)


def batches(arrays, seed):
    data = tf.data.Dataset.from_tensor_slices(arrays).shuffle(240, seed=seed)
    return strategy.experimental_distribute_dataset(data.batch(config.batch, drop_remainder=True))


def train_epoch(references, others, seed):
    losses = []
    for reference, other in zip(batches(references, seed), batches(others[0], seed + 1000)):
        losses.append(float(train(reference, other)))
    return np.mean(losses)


def error_of(arrays):
    spectrum, content = arrays
    return float(tf.sqrt(tf.reduce_mean(tf.square(encoder(spectrum)[1] - content))))


def first_phase(references, others):
    everything.restore(manager.latest_checkpoint)
    while epoch < config.epochs:
        loss = train_epoch(references, others, int(epoch))
        epoch.assign_add(1)
        strength.assign_add(config.strength)
        print(f"epoch {int(epoch)}: {loss:.4f}, saved as {manager.save()}")


def second_phase(references, others):
    everything.restore(manager.latest_checkpoint).assert_consumed()
    encoder_optimizer.learning_rate.assign(config.last_rate)
    for number in range(config.last_epochs):
        loss = train_epoch(references, others, config.epochs + number)
    return loss


def main():
    references, others = spectra(240, 1), spectra(240, 2, shift=0.04)
    tests = spectra(100, 3), spectra(100, 4, shift=0.04)
    first_phase(references, others)
    loss = second_phase(references, others)
    own = [error_of(each) for each in tests]
    for mean, weight in zip(means, encoder.trainable_variables):
        weight.assign(mean.numpy())
    averaged = [error_of(each) for each in tests]
    print("loss %.4f errors %.4f %.4f averaged %.4f %.4f" % (loss, *own, *averaged))


main()
