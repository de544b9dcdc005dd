"""Contrastive learning (NT-Xent) of spectra: two distorted views of a spectrum belong together."""
import dataclasses

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class Options:
    bands: int = 20
    spectra: int = 144
    batch: int = 24
    width: int = 8
    epochs: int = 4
    rate: float = 0.2
    temperature: float = 0.3
    noise: float = 0.25
    seed: int = 4


def spectra(options):
    rng = np.random.default_rng(options.seed)
    kinds = rng.integers(0, 6, options.spectra)
    peaks = np.random.default_rng(0).normal(size=(6, options.bands))
    rows = peaks[kinds] + rng.normal(0, 1.1, (options.spectra, options.bands))
    return rows.astype("float32"), kinds


def view(options, number):
    """A distorted copy; the distortion is that of the example and the epoch, wherever it is computed."""
    def distort(index, epoch, row):
        seed = tf.stack([index * 2 + number, epoch])
        noise = options.noise * tf.random.stateless_normal([options.bands], seed)
        gain = tf.random.stateless_uniform([], seed + [0, 1000], 0.7, 1.3)
        return gain * row + noise
    return distort


def pairs(strategy, options, rows, epoch):
    first, second = view(options, 0), view(options, 1)
    order = np.random.default_rng(epoch).permutation(len(rows)).astype("int32")
    data = tf.data.Dataset.from_tensor_slices((order, rows[order]))
    data = data.map(lambda index, row: (first(index, epoch, row), second(index, epoch, row)))
    data = data.batch(options.batch, drop_remainder=True)
    return strategy.experimental_distribute_dataset(data)


def make_encoder(options):
    return keras.Sequential([
        keras.Input((options.bands,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(options.width),
        keras.layers.UnitNormalization(),
    ])


def nt_xent(options):
    """Returns a function of the two views of this replica's examples; the negatives are those of all replicas."""

    def half(anchors, others):
        context = tf.distribute.get_replica_context()
        everyone = context.all_gather(others, axis=0)
        shift = context.replica_id_in_sync_group * tf.shape(anchors)[0]
        logits = tf.matmul(anchors, everyone, transpose_b=True) / options.temperature
        own = tf.range(tf.shape(anchors)[0]) + shift
        return tf.nn.sparse_softmax_cross_entropy_with_logits(own, logits)

    return lambda a, b: tf.reduce_sum(half(a, b) + half(b, a)) / (2.0 * options.batch)


def make_step(strategy, options, towers, optimizer):
    loss_of = nt_xent(options)
    left, right = towers

    def learn(a, b):
        variables = left.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_of(left(a, training=True), right(b, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(a, b):
        return strategy.reduce("SUM", strategy.run(learn, args=(a, b)), axis=None)

    return step


def neighbours(embedded, kinds):
    """How often the nearest other spectrum is of the same kind."""
    near = embedded @ embedded.T - 2.0 * np.eye(len(embedded))
    return float((kinds[near.argmax(1)] == kinds).mean())


def main(options=Options()):
    keras.utils.set_random_seed(options.seed)
    rows, kinds = spectra(options)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        encoder = make_encoder(options)
        towers = encoder, encoder   # Siamese: the second view goes through the same weights
        optimizer = keras.optimizers.SGD(options.rate, momentum=0.9)
        optimizer.build(encoder.trainable_variables)
    step = make_step(strategy, options, towers, optimizer)
    for epoch in range(options.epochs):
        losses = [float(step(a, b)) for a, b in pairs(strategy, options, rows, epoch)]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.5f} same kind {neighbours(encoder(rows).numpy(), kinds):.3f}")
    size = sum(float(np.abs(w).sum()) for w in encoder.get_weights())
    print(f"end: loss {np.mean(losses):.6f} weights {size:.5f}")


if __name__ == "__main__":
    main()
