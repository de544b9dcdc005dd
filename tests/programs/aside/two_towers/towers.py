#!/usr/bin/env python3
"""Which books do readers borrow next? Two towers, trained with the other books of the batch as negatives."""
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from keras import layers


@dataclass
class Settings:
    readers: int = 60
    books: int = 40
    width: int = 12
    batch: int = 32
    steps: int = 24
    epochs: int = 5
    rate: float = 0.2
    temperature: float = 0.3
    spread: float = 0.02
    file: str = "towers.weights.h5"


def loans(settings, seed=11):
    """Readers and books have a taste in common; the loans come in the order in which they were made."""
    rng = np.random.default_rng(seed)
    reader_taste = rng.normal(size=(settings.readers, 4))
    book_taste = rng.normal(size=(settings.books, 4))
    liking = np.exp(1.5 * reader_taste @ book_taste.T)
    count = settings.batch * settings.steps
    reader = np.sort(rng.integers(0, settings.readers, count).reshape(settings.steps, -1), axis=1).ravel()
    book = [rng.choice(settings.books, p=liking[r] / liking[r].sum()) for r in reader]
    return np.int32(reader), np.int32(book)


class Spread(layers.Layer):
    """Adds a penalty, so that the embeddings stay near the origin."""

    def __init__(self, weight, **kwargs):
        super().__init__(**kwargs)
        self.weight = weight

    def call(self, vectors):
        self.add_loss(self.weight * tf.reduce_mean(tf.reduce_sum(tf.square(vectors), axis=-1)))
        return vectors


class Towers(keras.Model):
    def __init__(self, settings):
        super().__init__()
        draw = lambda seed: keras.initializers.RandomNormal(stddev=0.3, seed=seed)  # noqa: E731
        self.reader = layers.Embedding(settings.readers, settings.width, draw(1))
        self.book = layers.Embedding(settings.books, settings.width, draw(2))
        self.head = layers.Dense(settings.width, activation="tanh", kernel_initializer=draw(3))
        self.spread = Spread(settings.spread)
        self.first_temperature = settings.temperature

    def build(self, input_shape=None):
        self.reader.build(None)
        self.book.build(None)
        self.head.build((None, self.reader.output_dim))
        self.temperature = self.add_weight(
            name="temperature", shape=(), initializer=keras.initializers.Constant(self.first_temperature))
        self.built = True

    def tower(self, vectors):
        return self.head(self.spread(vectors))

    def call(self, pair):
        reader, book = pair
        return self.tower(self.reader(reader)), self.tower(self.book(book))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        penalty = tf.add_n(self.losses)  # before replicas wait for each other
        reader, book = y_pred
        replica = tf.distribute.get_replica_context()
        ids, offset, parts = x[1], 0, 1
        if replica is not None and replica.num_replicas_in_sync > 1:
            parts = replica.num_replicas_in_sync
            offset = replica.replica_id_in_sync_group * tf.shape(book)[0]
            book, ids = replica.all_gather(book, axis=0), replica.all_gather(ids, axis=0)
        logits = tf.matmul(reader, book, transpose_b=True) / self.temperature
        # a book that occurs twice in a batch is no negative of itself
        right = offset + tf.range(tf.shape(reader)[0])
        twin = tf.logical_and(tf.equal(x[1][:, None], ids[None]), tf.not_equal(right[:, None], tf.range(tf.shape(ids)[0])[None]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(right, tf.where(twin, -1e9, logits))
        return (tf.reduce_mean(losses) + penalty) / parts


def recall_at(model, reader, book, books, k):
    readers, shelf = model.tower(model.reader(reader)), model.tower(model.book(np.arange(books)))
    best = tf.math.top_k(tf.matmul(readers, shelf, transpose_b=True), k).indices
    return float(np.mean(np.any(best.numpy() == book[:, None], axis=1)))


def compiled(settings):
    model = Towers(settings)
    model.build()
    model.compile(keras.optimizers.SGD(settings.rate, momentum=0.9))
    return model


def main():
    settings = Settings()
    reader, book = loans(settings)
    data = tf.data.Dataset.from_tensor_slices((reader, book)).batch(settings.batch, drop_remainder=True)
    data = data.map(lambda r, b: ((r, b),))

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = compiled(settings)
    history = model.fit(data, epochs=settings.epochs, verbose=0).history["loss"]
    for epoch, loss in enumerate(history, 1):
        print(f"epoch {epoch}  loss {loss:.5f}")
    model.save_weights(settings.file)

    # the autumn: one more epoch at a tenth of the rate, by the model that the file holds
    with strategy.scope():
        autumn = compiled(settings)
        autumn.optimizer.build(autumn.trainable_variables)
        autumn.load_weights(settings.file)
    autumn.optimizer.learning_rate = settings.rate / 10
    late = autumn.fit(data, epochs=1, verbose=0).history["loss"][-1]
    hits = recall_at(autumn, reader, book, settings.books, 5)
    size = sum(float(np.abs(w.numpy()).sum()) for w in autumn.trainable_variables)
    temperature = float(autumn.temperature.numpy())
    print(f"loss {history[-1]:.5f} autumn {late:.5f} temperature {temperature:.5f} recall {hits:.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
