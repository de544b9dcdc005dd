import keras
import tensorflow as tf

from .config import Config


def pinball(quantile):
    def loss(melt, predicted):
        off = melt - predicted
        return tf.reduce_mean(tf.maximum(quantile * off, (quantile - 1.0) * off), axis=-1)

    return loss


def build(cfg: Config) -> keras.Model:
    weather = keras.Input((cfg.days, 2), name="weather")
    x = keras.layers.Conv1D(8, 3, activation="tanh", name="days")(weather)
    x = keras.layers.Conv1D(8, 3, activation="tanh", name="weeks")(x)
    x = keras.layers.Flatten()(x)
    melt = keras.layers.Dense(1, name="melt")(x)
    return keras.Model(weather, melt)


def compile_model(model: keras.Model, cfg: Config):
    model.compile(
        optimizer=keras.optimizers.SGD(cfg.rate, momentum=cfg.momentum),
        loss=pinball(cfg.quantile),
        metrics=["mae"],
    )
    model.optimizer.build(model.trainable_variables)
