"""Named entity tagging of padded sentences with a bidirectional GRU.

The share of each tag in the text read so far corrects the scores (logit adjustment),
since most words are outside of any entity.
"""
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from keras import layers

TAGS = ["O", "PER", "LOC", "ORG"]


@dataclass
class Settings:
    words: int = 120
    longest: int = 14
    sentences: int = 256
    held_out: int = 72
    batch: int = 32
    width: int = 16
    units: int = 16
    epochs: int = 4
    rate: float = 0.5
    momentum: float = 0.85
    prior_decay: float = 0.9
    adjust: float = 0.7
    seed: int = 12


def sentences(count, settings, seed):
    rng = np.random.default_rng(seed)
    words = np.zeros((count, settings.longest), np.int32)
    tags = np.zeros((count, settings.longest), np.int32)
    for row in range(count):
        # short and long sentences in very different number
        length = int(rng.choice([3, 4, 5, settings.longest - 1, settings.longest]))
        tag = rng.choice(len(TAGS), size=length, p=[0.7, 0.15, 0.1, 0.05])
        low = 1 + tag * 29
        words[row, :length] = low + rng.integers(0, 29 + 8 * (tag < 3), size=length)
        tags[row, :length] = tag
    return words, tags


def all_sum(value):
    """Sum of a tensor over the replicas; to be called inside a step."""
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def masked_mean(values, mask):
    """This replica's part of the mean over all real words of the global batch."""
    return tf.reduce_sum(values * mask) / all_sum(tf.reduce_sum(mask))


class EntityF1(keras.metrics.Metric):
    """F1 over all words that are part of an entity."""

    def __init__(self, name="f1", **kwargs):
        super().__init__(name=name, **kwargs)
        self.right = self.add_variable((), "zeros", name="right")
        self.guessed = self.add_variable((), "zeros", name="guessed")
        self.wanted = self.add_variable((), "zeros", name="wanted")

    def update_state(self, tags, guess, mask):
        right, guessed, wanted = entity_counts(tags, guess, mask)
        self.right.assign_add(right)
        self.guessed.assign_add(guessed)
        self.wanted.assign_add(wanted)

    def result(self):
        return f1_of(self.right, self.guessed, self.wanted)


def entity_counts(tags, guess, mask):
    entity = tf.cast(tags > 0, tf.float32) * mask
    found = tf.cast(guess > 0, tf.float32) * mask
    right = tf.cast(tf.equal(tags, guess), tf.float32) * entity
    return tf.reduce_sum(right), tf.reduce_sum(found), tf.reduce_sum(entity)


def f1_of(right, guessed, wanted):
    return tf.math.divide_no_nan(2.0 * right, guessed + wanted)


class Tagger(keras.Model):

    def __init__(self, settings, prior, **kwargs):
        super().__init__(**kwargs)
        self.settings = settings
        self.embed = layers.Embedding(settings.words, settings.width, mask_zero=True)
        self.encode = layers.Bidirectional(layers.GRU(settings.units, return_sequences=True))
        self.score = layers.Dense(len(TAGS))
        self.prior = prior
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.f1 = EntityF1()

    @property
    def metrics(self):
        return [self.loss_mean, self.f1]

    def call(self, words, training=None):
        return self.score(self.encode(self.embed(words), training=training))

    def word_losses(self, logits, tags):
        adjusted = logits + self.settings.adjust * tf.math.log(self.prior)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(tags, adjusted)

    def update_prior(self, tags, mask):
        counts = all_sum(tf.reduce_sum(tf.one_hot(tags, len(TAGS)) * mask[..., None], [0, 1]))
        share = (counts + 1.0) / tf.reduce_sum(counts + 1.0)
        decay = self.settings.prior_decay
        self.prior.assign(decay * self.prior + (1 - decay) * share)

    def observe(self, logits, tags, mask, losses):
        self.loss_mean.update_state(losses, sample_weight=mask)
        self.f1.update_state(tags, tf.argmax(logits, -1, output_type=tf.int32), mask)
        return {metric.name: metric.result() for metric in self.metrics}

    def train_step(self, batch):
        words, tags = batch
        mask = tf.cast(words > 0, tf.float32)
        self.update_prior(tags, mask)
        with tf.GradientTape() as tape:
            logits = self(words, training=True)
            losses = self.word_losses(logits, tags)
            loss = masked_mean(losses, mask)
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        return self.observe(logits, tags, mask, losses)

    def test_step(self, batch):
        words, tags = batch
        mask = tf.cast(words > 0, tf.float32)
        logits = self(words, training=False)
        return self.observe(logits, tags, mask, self.word_losses(logits, tags))


def main():
    settings = Settings()
    keras.utils.set_random_seed(settings.seed)
    train = sentences(settings.sentences, settings, settings.seed)
    held_out = sentences(settings.held_out, settings, settings.seed + 1)
    train_data = tf.data.Dataset.from_tensor_slices(train).shuffle(
        settings.sentences, seed=settings.seed).batch(settings.batch, drop_remainder=True)
    held_out_data = tf.data.Dataset.from_tensor_slices(held_out).batch(settings.batch)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        prior = tf.Variable(tf.fill([len(TAGS)], 1.0 / len(TAGS)), trainable=False,
                            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        model = Tagger(settings, prior)
        model.compile(optimizer=keras.optimizers.SGD(settings.rate, momentum=settings.momentum))
        model(train[0][:2])

    history = model.fit(train_data, epochs=settings.epochs, validation_data=held_out_data, verbose=0)
    for epoch in range(settings.epochs):
        print(f"epoch {epoch + 1}: " + " ".join(
            f"{name} {values[epoch]:.4f}" for name, values in history.history.items()))
    print("prior", " ".join(f"{tag}={share:.3f}" for tag, share in zip(TAGS, prior.numpy())))
    result = model.evaluate(held_out_data, verbose=0, return_dict=True)
    weights = sum(np.abs(w).sum() for w in model.get_weights())
    print(f"final: loss {result['loss']:.5f} f1 {result['f1']:.5f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
