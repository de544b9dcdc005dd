"""History through convolutions, together with a vector for the product."""
import keras
from keras import layers

from .data import AHEAD, HISTORY, PRODUCTS


def forecaster(filters=10, width=4, hidden=20):
    history = keras.Input((HISTORY, 1), name="history")
    product = keras.Input((), dtype="int32", name="product")
    x = layers.Conv1D(filters, 7, activation="relu")(history)
    x = layers.Conv1D(filters, 3, activation="relu")(x)
    x = layers.Flatten()(x)
    who = layers.Embedding(PRODUCTS, width)(product)
    x = layers.Dense(hidden, activation="relu")(layers.Concatenate()([x, who]))
    return keras.Model([history, product], layers.Dense(AHEAD)(x), name="forecaster")
