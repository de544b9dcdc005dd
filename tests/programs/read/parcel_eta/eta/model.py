import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("eta")
class Pinball(keras.losses.Loss):
    """Promises are kept in a share `quantile` of all deliveries."""

    def __init__(self, quantile=0.5, name="pinball", **options):
        super().__init__(name=name, **options)
        self.quantile = quantile

    def call(self, y_true, y_pred):
        late = y_true - y_pred
        return tf.reduce_mean(tf.maximum(self.quantile * late, (self.quantile - 1) * late), axis=-1)

    def get_config(self):
        return {**super().get_config(), "quantile": self.quantile}


def build(config, table):
    draw = keras.initializers.GlorotUniform
    return keras.Sequential([
        keras.Input((table.shape[1],)),
        keras.layers.Normalization(mean=table.mean(0), variance=table.var(0)),
        keras.layers.Dense(config.hidden, "tanh", kernel_initializer=draw(config.seed)),
        keras.layers.Dense(config.hidden, "tanh", kernel_initializer=draw(config.seed + 1)),
        keras.layers.Dense(1, kernel_initializer=draw(config.seed + 2)),
    ])
