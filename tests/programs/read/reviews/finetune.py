"""Fine-tunes a classifier of reviews: first its head on given word vectors, then all of it."""
import json
import pathlib

import keras
import numpy as np
import tensorflow as tf

import corpus
import network

config = json.loads(pathlib.Path(__file__).with_name("config.json").read_text())
strategy = tf.distribute.MirroredStrategy()


def stage(model, rate, epochs, data, name):
    with strategy.scope():
        model.compile(
            optimizer=keras.optimizers.Adam(rate),
            loss=network.penalised(config["penalty"]),
            metrics=[network.F1()],
        )
    told = model.fit(data, epochs=epochs, verbose=0).history
    print(name, *(f"{key} {told[key][-1]:.4f}" for key in ("loss", "f1")))
    return told["loss"][-1], told["f1"][-1]


def main():
    data = corpus.batches(320, 1, config)
    with strategy.scope():
        model = network.make(config, corpus.vectors(config["vocabulary"], config["width"]))
    head, everything = config["stages"]
    stage(model, head["rate"], head["epochs"], data, head["name"])
    network.thaw(model)
    loss, f1 = stage(model, everything["rate"], everything["epochs"], data, everything["name"])
    model.save("reviews.keras")

    with strategy.scope():
        ready = keras.models.load_model("reviews.keras", compile=False)
    held, labels = corpus.reviews(96, config["vocabulary"], config["length"], 2)
    logits = ready.predict(held, batch_size=config["batch"], verbose=0)
    entropy = np.mean(np.logaddexp(0, -(2 * labels - 1) * logits))
    print(f"loss {loss:.4f} f1 {f1:.4f} held out {entropy:.4f} words {np.abs(ready.get_layer('words').get_weights()[0]).sum():.3f}")


if __name__ == "__main__":
    main()
