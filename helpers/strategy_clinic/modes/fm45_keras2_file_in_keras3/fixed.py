import tensorflow as tf
import tf_keras  # Keras 2

strategy = tf.distribute.get_strategy()


def make_model(keras):
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(1, kernel_initializer="ones")(inputs)
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    return model


old = make_model(tf_keras)
old.set_weights([2 * weight for weight in old.get_weights()])  # in place of a training
old.save("old.keras")
with strategy.scope():
    new = make_model(tf.keras)  # fixed
    new.load_weights("old.keras")  # fixed: only the weights are read
print("prediction:", new(tf.ones((1, 3))).numpy())
