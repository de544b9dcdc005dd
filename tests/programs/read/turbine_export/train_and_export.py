import sys

import keras
import numpy as np
import tensorflow as tf
from turbine import CHANNELS, STEPS, MissedFaults, TurbineModel
from vibrations import batches, sequences


def train(strategy, epochs=6, batch=16):
    recordings, faulty = sequences(192, seed=3)
    check = batches(*sequences(64, seed=4), batch)
    with strategy.scope():
        model = TurbineModel(seed=8)
        model.compile(keras.optimizers.SGD(0.04, momentum=0.9), "binary_crossentropy", metrics=[MissedFaults()])
    for epoch in range(epochs):
        logs = model.fit(batches(recordings, faulty, batch, epoch), validation_data=check, verbose=0).history
        print(f"epoch {epoch + 1}: loss {logs['loss'][0]:.4f} missed {logs['missed'][0]:.4f} "
              f"val loss {logs['val_loss'][0]:.4f} val missed {logs['val_missed'][0]:.4f}")
    return model, logs


def serve(folder, requests):
    """What the service answers: it has TensorFlow and the folder, and none of this code."""
    loaded = tf.saved_model.load(folder)
    return [loaded.serve(request).numpy() for request in requests]


def main(folder="exported/turbine"):
    model, logs = train(tf.distribute.MirroredStrategy())
    model.export(folder, input_signature=[tf.TensorSpec((None, STEPS, CHANNELS), tf.float32)], verbose=False)
    new, faulty = sequences(63, seed=5)
    answers = np.concatenate(serve(folder, np.split(new, [1, 8, 30])))
    right = np.mean((answers > 0.5) == (faulty > 0.5))
    print(f"served: accuracy {right:.4f} mean {answers.mean():.5f} deviation {answers.std():.5f} "
          f"val loss {logs['val_loss'][0]:.5f} val missed {logs['val_missed'][0]:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
