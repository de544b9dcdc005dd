"""Trains a model of a table, tunes it for another target, and exports it for a server."""
import os

import numpy as np
import tensorflow as tf
from tensorflow import keras

from layers import table_model

COLUMNS, BATCH = 10, 40

keras.utils.set_random_seed(8)
strategy = tf.distribute.MirroredStrategy()
rng = np.random.default_rng(8)
table = rng.normal(size=(400, COLUMNS)).astype("float32")
prices = np.abs(table[:, :1]) + table[:, 1:2] * table[:, 2:3]
demand = np.concatenate([prices > 1.0, table[:, 3:4] > 0.5], axis=1).astype("float32")


def batches(target):
    return tf.data.Dataset.from_tensor_slices((table, target.astype("float32"))).batch(BATCH)


def pretrain(folder):
    with strategy.scope():
        model = table_model(COLUMNS, 1)
        model.compile(keras.optimizers.Adam(0.01), loss="mse", jit_compile=False)
    model.fit(batches(prices), epochs=4, verbose=0)
    model.save(f"{folder}/pretrained.keras")
    return model


def tune(folder):
    with strategy.scope():
        base = keras.models.load_model(f"{folder}/pretrained.keras")
        model = table_model(COLUMNS, 2)
        for name in ("first", "second"):
            model.get_layer(name).set_weights(base.get_layer(name).get_weights())
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=losses(), jit_compile=False)
    history = model.fit(batches(demand), epochs=3, verbose=0)
    model.save(f"{folder}/tuned.keras")
    return history.history["loss"]


def losses():
    return keras.losses.BinaryCrossentropy(from_logits=True)


def continue_slowly(folder):
    """A last epoch with a tenth of the rate and the momentum of the file."""
    with strategy.scope():
        model = keras.models.load_model(f"{folder}/tuned.keras")
        model.optimizer.learning_rate = 0.01
    model.fit(batches(demand), epochs=1, verbose=0)
    return model


def serve(model, folder):
    signature = [tf.TensorSpec((None, COLUMNS), tf.float32, name="table")]

    @tf.function(input_signature=signature)
    def score(rows):
        return {"probability": tf.sigmoid(model(rows, training=False))}

    module = tf.Module()
    module.model, module.score = model, score
    tf.saved_model.save(module, f"{folder}/served", signatures=module.score)
    loaded = tf.saved_model.load(f"{folder}/served")
    one = loaded.score(table[:1])["probability"]
    many = loaded.score(table[:100])["probability"]
    return float(tf.reduce_mean(one)), float(tf.reduce_mean(many))


def main(folder="models"):
    os.makedirs(folder, exist_ok=True)
    pretrained = pretrain(folder)
    before = float(tf.reduce_mean(tf.square(pretrained(table) - prices)))
    first, *_, last = tune(folder)
    model = continue_slowly(folder)
    one, many = serve(model, folder)
    after = float(np.mean(losses()(demand, model(table))))
    print(f"price {before:.4f} demand {first:.4f} to {last:.4f}, {after:.4f}; served {one:.4f} {many:.4f}")


main()
