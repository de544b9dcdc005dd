import keras

from .data import CLASSES, LENGTH


def make_encoder(width=32):
    return keras.Sequential([
        keras.Input((LENGTH,)),
        keras.layers.Reshape((LENGTH, 1)),
        keras.layers.Conv1D(8, 5, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(width, activation="relu"),
    ], name="encoder")


def make_projector(width=32, outputs=16):
    return keras.Sequential([
        keras.Input((width,)),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dense(outputs),
    ], name="projector")


def make_probe(width=32):
    return keras.Sequential([keras.Input((width,)), keras.layers.Dense(CLASSES)], name="probe")
