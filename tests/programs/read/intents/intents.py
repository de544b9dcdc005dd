"""What does a customer want? An encoder of sentences is trained without labels, and a classifier stands on it.

The program has three parts. `pretrain` lets an encoder guess which words a sentence has, `classify` freezes it below a
classifier, and `serve` loads what was exported and answers, as the server would. Sentences are made up.
"""
import dataclasses
import pathlib

import keras
import numpy as np
import tensorflow as tf

WORDS, LENGTH, INTENTS = 40, 9, 4
WORK = pathlib.Path("work")


@dataclasses.dataclass
class Plan:
    width: int = 10
    depth: int = 2
    batch: int = 40
    epochs: tuple[int, int] = (4, 4)
    rates: tuple[float, float] = (0.02, 0.03)
    checkpoint: str = str(WORK / "encoder")
    weights: str = str(WORK / "intents.weights.h5")
    exported: str = str(WORK / "serving")


# ---------------------------------------------------------------- sentences


def sentences(rows, seed):
    rng = np.random.default_rng(seed)
    intent = rng.integers(0, INTENTS, rows)
    themes = np.random.default_rng(77).dirichlet(np.full(WORDS - 1, 0.2), INTENTS)
    common = np.full(WORDS - 1, 1 / (WORDS - 1))
    words = np.stack([rng.choice(WORDS - 1, LENGTH, p=0.5 * themes[one] + 0.5 * common) + 1 for one in intent])
    words[np.arange(LENGTH)[None] >= rng.integers(4, LENGTH + 1, rows)[:, None]] = 0
    return words.astype("int32"), intent.astype("int32")


def bags(words):
    """Returns for each sentence which words it has."""
    found = np.zeros((len(words), WORDS), "float32")
    np.put_along_axis(found, words, 1.0, axis=1)
    found[:, 0] = 0
    return found


def batched(size, *arrays):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(size)


# ---------------------------------------------------------------- networks


class Block(keras.layers.Layer):
    """Mixes each word with its neighbours, and adds the word itself."""

    def __init__(self, width, seed):
        super().__init__()
        self.mix = keras.layers.Conv1D(width, 3, padding="same", activation="tanh",
                                       kernel_initializer=keras.initializers.GlorotUniform(seed))
        self.scale = keras.layers.LayerNormalization()

    def build(self, shape):
        self.mix.build(shape)
        self.scale.build(shape)

    def call(self, x):
        return self.scale(x + self.mix(x))


class Encoder(keras.Model):
    def __init__(self, width, depth):
        super().__init__()
        self.words = keras.layers.Embedding(WORDS, width, embeddings_initializer=keras.initializers.RandomNormal(0, 0.5, seed=80))
        self.blocks = tuple(Block(width, 81 + number) for number in range(depth))

    def call(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        there = tf.cast(ids > 0, x.dtype)[..., None]
        return tf.reduce_sum(x * there, 1) / tf.maximum(tf.reduce_sum(there, 1), 1.0)


class WithHead(keras.Model):
    """An encoder and one dense layer."""

    def __init__(self, encoder, outputs, seed):
        super().__init__()
        self.encoder = encoder
        self.head = keras.layers.Dense(outputs, kernel_initializer=keras.initializers.GlorotUniform(seed))

    def call(self, ids):
        return self.head(self.encoder(ids))


EXAMPLE = tf.ones((1, LENGTH), tf.int32)


# ---------------------------------------------------------------- the parts


def pretrain(strategy, plan):
    words, _ = sentences(480, 1)
    with strategy.scope():
        encoder = Encoder(plan.width, plan.depth)
        guesser = WithHead(encoder, WORDS, 90)
        guesser.compile(optimizer=keras.optimizers.Adam(plan.rates[0]),
                        loss=keras.losses.BinaryCrossentropy(from_logits=True))
    told = guesser.fit(batched(plan.batch, words, bags(words)), epochs=plan.epochs[0], verbose=0)
    path = tf.train.Checkpoint(encoder=encoder).write(plan.checkpoint)
    return path, told.history["loss"][-1]


def pretrained(plan, path):
    """Returns a new encoder with the weights of the first part."""
    encoder = Encoder(plan.width, plan.depth)
    encoder(EXAMPLE)
    tf.train.Checkpoint(encoder=encoder).read(path).assert_existing_objects_matched()
    encoder.trainable = False
    return encoder


def new_classifier(plan, encoder):
    classifier = WithHead(encoder, INTENTS, 91)
    classifier.compile(
        optimizer=keras.optimizers.Adam(plan.rates[1]),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return classifier


def classify(strategy, plan, path):
    words, intent = sentences(240, 2)
    with strategy.scope():
        encoder = pretrained(plan, path)
        classifier = new_classifier(plan, encoder)
    told = classifier.fit(batched(plan.batch, words, intent), epochs=plan.epochs[1], verbose=0)
    classifier.save_weights(plan.weights)
    return told.history["loss"][-1]


def export(strategy, plan):
    """Writes what the server needs; this could be another program."""
    with strategy.scope():
        classifier = WithHead(Encoder(plan.width, plan.depth), INTENTS, 91)
        classifier(EXAMPLE)
        classifier.load_weights(plan.weights)
        classifier.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    held = sentences(80, 3)
    loss = classifier.evaluate(batched(plan.batch, *held), verbose=0)
    answer = tf.function(lambda ids: tf.nn.softmax(classifier(ids)), input_signature=[tf.TensorSpec((None, LENGTH), tf.int32)])
    tf.saved_model.save(classifier, plan.exported, signatures=answer)
    return loss


def serve(plan):
    loaded = tf.saved_model.load(plan.exported)
    words, intent = sentences(7, 4)
    answer = next(iter(loaded.signatures["serving_default"](tf.constant(words)).values()))
    return float(np.mean(answer.numpy()[np.arange(7), intent]))


def main(plan):
    WORK.mkdir(exist_ok=True)
    strategy = tf.distribute.MirroredStrategy()
    path, guessed = pretrain(strategy, plan)
    print(f"words are guessed with a loss of {guessed:.4f}")
    learned = classify(strategy, plan, path)
    held = export(strategy, plan)
    print(f"guessed {guessed:.4f} learned {learned:.4f} held out {held:.4f} sure of the right intent {serve(plan):.4f}")


if __name__ == "__main__":
    main(Plan())
