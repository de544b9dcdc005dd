import tensorflow as tf


def make_model():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")
    return model


inputs = labels = tf.ones((8, 1))
model = make_model()
model.fit(inputs, labels, verbose=0)
model.save_weights("model.weights.h5")  # wrong: the optimizer does not come back

loaded = make_model()  # wrong: a new optimizer
loaded.load_weights("model.weights.h5")  # wrong: that optimizer is not built
loaded.fit(inputs, labels, verbose=0)
print("kernel after two epochs:", float(loaded.get_weights()[0][0, 0]))
