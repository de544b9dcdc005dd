"""Learns from two views of the same image, without labels; then a linear probe for each of three folds of the labels."""
import keras
import nets
import numpy as np
import tensorflow as tf

SIDE, IMAGES, BATCH, EPOCHS, KINDS, FOLDS = 10, 135, 16, 3, 3, 3
strategy = tf.distribute.MirroredStrategy()


def images(seed=8):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, IMAGES)
    rows, columns = np.mgrid[:SIDE, :SIDE] / SIDE
    angle = kind * np.pi / KINDS + 0.15 * rng.normal(size=IMAGES)
    along = rows * np.cos(angle)[:, None, None] + columns * np.sin(angle)[:, None, None]
    clean = np.sin(12 * along + rng.uniform(0, 6, IMAGES)[:, None, None])
    return clean[..., None].astype("float32"), kind.astype("int32")


def views(pictures, epoch):
    """Each image twice, shifted and with noise of its own."""
    rng = np.random.default_rng(1000 + epoch)
    shifts = rng.integers(-2, 3, (2, len(pictures)))
    pair = [np.stack([np.roll(p, s, 1) for p, s in zip(pictures, row)]) for row in shifts]
    return tuple(np.float32(each + 0.3 * rng.normal(size=each.shape)) for each in pair)


def spread(columns, drop):
    data = tf.data.Dataset.from_tensor_slices(columns).batch(BATCH, drop_remainder=drop)
    return strategy.experimental_distribute_dataset(data)


class Pretraining:
    def __init__(self):
        with strategy.scope():
            self.first, self.second = nets.siamese(lambda: nets.encoder(SIDE))
            self.similarity = nets.Similarity()
            self.similarity(tf.zeros((1, 12)), tf.zeros((1, 12)))
            held = {id(w): w for part in (self.first, self.second, self.similarity)
                    for w in part.trainable_weights}
            self.weights = list(held.values())
            self.optimizer = keras.optimizers.Adam(0.01)
            self.optimizer.build(self.weights)

    def learn(self, one, two):
        with tf.GradientTape() as tape:
            one, two = self.first(one, training=True), self.second(two, training=True)
            losses = nets.contrast(self.similarity, one, two) + nets.contrast(self.similarity, two, one)
            loss = tf.reduce_sum(losses) / (2 * BATCH)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights))
        return loss

    @tf.function
    def step(self, pair):
        return strategy.reduce("SUM", strategy.run(self.learn, pair), axis=None)

    def run(self, pictures):
        for epoch in range(EPOCHS):
            losses = [float(self.step(pair)) for pair in spread(views(pictures, epoch), True)]
            print(f"pretraining {epoch}: {np.mean(losses):.4f}")
        return losses[-1]


class Probe:
    def __init__(self):
        self.reset()

    def reset(self):
        with strategy.scope():
            self.head = keras.layers.Dense(KINDS, kernel_initializer=nets.glorot(9))
            self.head.build((None, 12))
            self.optimizer = keras.optimizers.SGD(0.2)
            self.optimizer.build(self.head.trainable_variables)

    def losses(self, embedded, kind):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(kind, self.head(embedded))

    def learn(self, embedded, kind):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.losses(embedded, kind), global_batch_size=BATCH)
        weights = self.head.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    @tf.function
    def step(self, embedded, kind):
        strategy.run(self.learn, (embedded, kind))

    def total(self, embedded, kind):
        losses = self.losses(embedded, kind)
        return tf.stack([tf.reduce_sum(losses), tf.cast(tf.size(losses), tf.float32)])

    @tf.function
    def totals(self, batch):
        return strategy.reduce("SUM", strategy.run(self.total, batch), axis=None)

    def validate(self, data):
        total, count = sum(self.totals(batch).numpy() for batch in data)
        return total / count


def folds(embedded, kind):
    place = np.arange(IMAGES) % FOLDS
    for fold in range(FOLDS):
        out = place == fold
        yield (embedded[~out], kind[~out]), (embedded[out], kind[out])


def main():
    pictures, kind = images()
    pretraining = Pretraining()
    last = pretraining.run(pictures)
    embedded = pretraining.first(pictures).numpy()
    found = []
    for training, validation in folds(embedded, kind):
        probe = Probe()
        for _ in range(2):
            for batch in spread(training, True):
                probe.step(*batch)
        found.append(probe.validate(spread(validation, False)))
    print(f"last {last:.4f} factor {pretraining.similarity.log_factor.numpy():.4f} "
          f"folds {found[0]:.4f} {found[1]:.4f} {found[2]:.4f}")


main()
