import tensorflow as tf


@tf.keras.utils.register_keras_serializable("clinic")
class Regressor(tf.keras.Model):
    def __init__(self, rate=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = tf.keras.layers.Dropout(rate)
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs, training=False):
        return self.dense(self.dropout(inputs, training=training))

    def get_config(self):
        return {**super().get_config(), "rate": self.dropout.rate}


for rate in (0.25, 0.5):
    model = Regressor(rate=rate)
    model(tf.ones((1, 2)))
    model.save("model.keras")
    loaded = tf.keras.models.load_model("model.keras")
    print("rate of dropout:", loaded.get_config()["rate"])
