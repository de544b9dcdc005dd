import keras
from keras import layers

from series import HISTORY, HORIZON


def build_network(filters=12, units=20):
    inputs = keras.Input((HISTORY, 1))
    x = inputs
    for dilation in (1, 2, 4):
        y = layers.Conv1D(filters, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        x = y if x is inputs else layers.Add()([x, y])
    last = layers.Cropping1D((HISTORY - 1, 0))(x)
    last = layers.Flatten()(last)
    hidden = layers.Dense(units, activation="tanh")(last)
    return keras.Model(inputs, layers.Dense(HORIZON)(hidden))
