"""Tags for dishes. After each epoch the model is kept as models/tags-NN.keras; the newest one is continued."""
import re
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from dishes import LONGEST, TAGS, WORDS, dishes, frequencies
from layers import WordBag

EPOCHS, BATCH, SEED = 6, 32, 4
FOLDER = Path("models")


def new_model(counts):
    ids = keras.Input((LONGEST,), dtype="int32")
    x = WordBag(WORDS, 24, counts, sharpness=20.0, seed=SEED)(ids)
    x = keras.layers.Dense(24, "relu", kernel_initializer=keras.initializers.HeNormal(SEED + 1))(x)
    logits = keras.layers.Dense(TAGS, kernel_initializer=keras.initializers.GlorotUniform(SEED + 2))(x)
    model = keras.Model(ids, logits)
    compile_it(model)
    return model


def compile_it(model):
    model.compile(keras.optimizers.Adam(0.02), keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")])


def newest():
    """The number of the last epoch that is kept, and its file."""
    kept = {int(re.search(r"\d+", path.name)[0]): path for path in FOLDER.glob("tags-*.keras")}
    return max(kept.items(), default=(0, None))


def keep(model, epoch):
    partly = FOLDER / "partly.keras"
    model.save(partly)
    partly.rename(FOLDER / f"tags-{epoch:02d}.keras")
    (FOLDER / f"tags-{epoch - 2:02d}.keras").unlink(missing_ok=True)


def batches(ids, tags, order):
    return tf.data.Dataset.from_tensor_slices((ids[order], tags[order])).batch(BATCH)


def main():
    FOLDER.mkdir(exist_ok=True)
    ids, tags = dishes(384, seed=1)
    test = dishes(128, seed=2)
    strategy = tf.distribute.MirroredStrategy()
    start, path = newest()
    with strategy.scope():
        try:
            model = keras.models.load_model(path) if path else new_model(frequencies(ids))
        except (OSError, ValueError) as reason:
            print("cannot be read, so a new model is made:", reason)
            start, model = 0, new_model(frequencies(ids))

    rng = np.random.default_rng(SEED)
    for _ in range(start):
        rng.permutation(len(ids))  # the orders of the epochs that are done
    for epoch in range(start, EPOCHS):
        order = rng.permutation(len(ids))
        logs = model.fit(batches(ids, tags, order), verbose=0).history
        keep(model, epoch + 1)
        print(f"epoch {epoch + 1}: loss {logs['loss'][0]:.4f}, accuracy {logs['accuracy'][0]:.4f}", flush=True)

    loss, accuracy = model.evaluate(*test, batch_size=64, verbose=0)
    vectors = float(np.abs(model.get_weights()[0]).sum())
    print(f"test: loss {loss:.4f}, accuracy {accuracy:.4f}, vectors {vectors:.3f}")


if __name__ == "__main__":
    main()
