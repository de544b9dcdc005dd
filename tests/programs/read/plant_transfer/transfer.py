"""Two plants, three stages: learn the kinds of faults, a new head on the frozen encoder, then all of it with a small rate.

Each stage leaves a file when it has ended, and a job that was stopped goes on in the stage where it was, from the last
epoch that is in the backup.
"""
import json
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from data import BANDS, KINDS, new_plant, old_plant
from keras import layers

WORK = Path("stages")


def make_encoder(config):
    return keras.Sequential([
        keras.Input((BANDS,)),
        layers.Dense(config["units"], activation="relu"),
        layers.LayerNormalization(),
        layers.Dense(config["code"], activation="tanh"),
    ], name="encoder")


def run_stage(name, model, data, epochs):
    """Fits a model, from where a former run was stopped, and keeps it."""
    report = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: print(f"{name} {epoch}: loss {logs['loss']:.5f}", flush=True))
    model.fit(data, epochs=epochs, verbose=0, shuffle=False,
              callbacks=[report, keras.callbacks.BackupAndRestore(str(WORK / f"backup_{name}"))])
    unfinished = WORK / f"unfinished_{name}.keras"
    model.save(unfinished)
    os.replace(unfinished, WORK / f"{name}.keras")
    return model


def done(name):
    return (WORK / f"{name}.keras").exists()


def learn_kinds(config):
    encoder = make_encoder(config)
    model = keras.Sequential([encoder, layers.Dense(KINDS)])
    model.compile(keras.optimizers.Adam(config["source_rate"]),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    run_stage("kinds", model, old_plant(config), config["source_epochs"])


def learn_head(config, train):
    encoder = keras.models.load_model(WORK / "kinds.keras").get_layer("encoder")
    encoder.trainable = False
    model = keras.Sequential([encoder, layers.Dense(8, activation="relu"), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(config["head_rate"]), "mse")
    run_stage("head", model, train, config["head_epochs"])
    return model


def tune_all(config, train):
    model = keras.models.load_model(WORK / "head.keras")
    for layer in model.get_layer("encoder").layers:  # loaded, the encoder says that it is trainable; its layers are not
        layer.trainable = True
    model.compile(keras.optimizers.Adam(config["tune_rate"]), "mse")
    return run_stage("tuned", model, train, config["tune_epochs"])


def main():
    config = json.loads(Path("config.json").read_text())
    keras.utils.set_random_seed(config["seed"])
    WORK.mkdir(exist_ok=True)
    train, test = new_plant(config)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        if not done("kinds"):
            learn_kinds(config)
        keras.utils.set_random_seed(config["seed"] + 1)
        if not done("head"):
            learn_head(config, train)
        if not done("tuned"):
            tune_all(config, train)
        kinds, head, tuned = (keras.models.load_model(WORK / f"{name}.keras") for name in ("kinds", "head", "tuned"))
    accuracy = np.mean(np.concatenate([np.argmax(kinds(x), -1) == kind for x, kind in old_plant(config)]))
    before, after = (np.mean([np.square(model(x) - y) for x, y in test]) for model in (head, tuned))
    moved = sum(float(np.abs(a - b).sum()) for a, b in zip(
        kinds.get_layer("encoder").get_weights(), tuned.get_layer("encoder").get_weights()))
    print(f"kinds {accuracy:.4f}  urgency with the head {before:.5f}, tuned {after:.5f}  encoder moved by {moved:.4f}")


if __name__ == "__main__":
    main()
