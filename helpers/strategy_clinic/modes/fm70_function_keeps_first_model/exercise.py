import tensorflow as tf


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


@tf.function
def predict(batch):
    return model(batch)


best = make_model()
best.set_weights([tf.fill((1, 1), 5.0)])
best.save("best.keras")
model = make_model()
first = predict(tf.ones((1, 1)))
print("new model:", float(first[0, 0]))
model = tf.keras.models.load_model("best.keras")
second = predict(tf.ones((1, 1)))
print("best model:", float(second[0, 0]))
