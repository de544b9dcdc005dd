import tensorflow as tf


@tf.keras.utils.register_keras_serializable("clinic")
class Scaled(tf.keras.Model):  # wrong: no get_config, so the file has no factor
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return self.factor * self.dense(inputs)


model = Scaled(3.0)
print("before saving:", float(model(tf.ones((1, 2)))[0, 0]))
model.save("model.keras")

loaded = tf.keras.models.load_model("model.keras")
print("after loading:", float(loaded(tf.ones((1, 2)))[0, 0]))
