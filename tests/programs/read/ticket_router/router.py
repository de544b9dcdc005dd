"""Routes support tickets: which queue gets it, and is it urgent?

Trains on words that the pipeline has cut, then saves one model that takes the raw text, loads it again as the nightly
evaluation does, and exports it for the server.
"""
import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

QUEUES = {
    "billing": "invoice charge refund card payment price".split(),
    "network": "router wifi slow packet vpn latency".split(),
    "account": "login password reset locked email profile".split(),
    "hardware": "screen battery fan broken keyboard cable".split(),
}
FILLER = "please the my is again since yesterday and help with this it".split()
ALARM = "immediately outage customers blocked production".split()


def write_tickets(count, seed):
    rng = np.random.default_rng(seed)
    texts, queues, urgent = [], [], []
    for _ in range(count):
        queue = int(rng.integers(len(QUEUES)))
        words = list(rng.choice(list(QUEUES.values())[queue], 2)) + list(rng.choice(FILLER, rng.integers(3, 8)))
        other = list(QUEUES.values())[int(rng.integers(len(QUEUES)))]
        words += list(rng.choice(other, 1))
        hurry = rng.random() < 0.35
        words += list(rng.choice(ALARM, 1)) if hurry else []
        rng.shuffle(words)
        texts.append(" ".join(words))
        queues.append(queue)
        urgent.append(float(hurry))
    return np.array(texts), np.array(queues), np.float32(urgent)[:, None]


@keras.saving.register_keras_serializable("router")
class AttentivePooling(layers.Layer):
    """The mean of the words' vectors, weighted by what a learned query finds in them."""

    def __init__(self, sharpness=1.0, padding=0, **kwargs):
        super().__init__(**kwargs)
        self.sharpness = sharpness
        self.padding = padding

    def build(self, shapes):
        self.query = self.add_weight(shape=(shapes[0][-1],), initializer="random_normal", name="query")

    def call(self, inputs):
        vectors, ids = inputs
        scores = self.sharpness * ops.einsum("btd,d->bt", vectors, self.query)
        scores = ops.where(ops.equal(ids, self.padding), -1e9, scores)
        return ops.einsum("bt,btd->bd", ops.softmax(scores), vectors)

    def get_config(self):
        return {**super().get_config(), "sharpness": self.sharpness, "padding": self.padding}


def classifier(vocabulary_size, length):
    ids = keras.Input((length,), dtype="int64", name="ids")
    vectors = layers.Embedding(vocabulary_size, 12)(ids)
    pooled = AttentivePooling(sharpness=4.0)([vectors, ids])
    hidden = layers.Dense(16, "tanh")(pooled)
    queue = layers.Dense(len(QUEUES), name="queue")(hidden)
    urgent = layers.Dense(1, name="urgent")(layers.Concatenate()([pooled, hidden]))
    return keras.Model(ids, {"queue": queue, "urgent": urgent}, name="classifier")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=14)
    args = parser.parse_args()
    keras.utils.set_random_seed(77)

    texts, queues, urgent = write_tickets(640, seed=5)
    words = layers.TextVectorization(output_sequence_length=args.length, standardize="lower")
    words.adapt(texts[:512])

    def tickets(part):
        labels = {"queue": queues[part], "urgent": urgent[part]}
        data = tf.data.Dataset.from_tensor_slices((texts[part], labels)).batch(args.batch)
        return data.map(lambda text, label: (words(text), label)).cache().prefetch(1)

    train, held = tickets(slice(512)), tickets(slice(512, None))

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = classifier(words.vocabulary_size(), args.length)
        model.compile(
            keras.optimizers.Adam(0.02),
            loss={"queue": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  "urgent": keras.losses.BinaryCrossentropy(from_logits=True)},
            loss_weights={"queue": 1.0, "urgent": 0.5},
            metrics={"queue": [keras.metrics.SparseCategoricalAccuracy(name="acc")],
                     "urgent": [keras.metrics.BinaryAccuracy(name="acc", threshold=0.0)]},
        )
    stop = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    history = model.fit(train, validation_data=held, epochs=args.epochs, verbose=0, callbacks=[stop]).history
    for epoch, (loss, val) in enumerate(zip(history["loss"], history["val_loss"]), 1):
        print(f"epoch {epoch}: loss {loss:.4f} val_loss {val:.4f}")

    text = keras.Input((), dtype="string", name="text")
    keras.Model(text, model(words(text)), name="router").save("router.keras")
    model.export("served", verbose=False)

    router = keras.models.load_model("router.keras")
    answers = router.predict(tf.constant(texts[512:]), batch_size=64, verbose=0)
    right = np.mean(answers["queue"].argmax(-1) == queues[512:])
    logits = np.float64(answers["queue"])
    shifted = logits - logits.max(-1, keepdims=True)
    nll = np.mean(np.log(np.exp(shifted).sum(-1)) - shifted[np.arange(len(shifted)), queues[512:]])
    hurry = np.mean((answers["urgent"] > 0) == urgent[512:])

    served = tf.saved_model.load("served")
    one = served.serve(words(tf.constant(["router outage please help"])))
    print(f"evaluated: queue accuracy {right:.4f} nll {nll:.4f} urgent accuracy {hurry:.4f}"
          f" served {float(one['urgent'][0, 0]):.4f}")


if __name__ == "__main__":
    main()
