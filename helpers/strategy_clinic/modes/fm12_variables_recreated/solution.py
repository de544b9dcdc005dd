import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    return tf.keras.Sequential(layers)


@tf.function
def predict(model, inputs):
    return model(inputs)


with strategy.scope():
    first = make_model()
    second = make_model()
print("first model:", predict(first, tf.ones((1, 3))).numpy())
print("second model:", predict(second, tf.ones((1, 3))).numpy())
