import tensorflow as tf

inputs = labels = tf.ones((8, 1))
dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
model.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")
model.fit(inputs, labels, verbose=0)
model.save("first_epoch.keras")

loaded = tf.keras.models.load_model("first_epoch.keras")
loaded.optimizer.learning_rate = 0.125
loaded.fit(inputs, labels, verbose=0)
print("steps in all:", int(loaded.optimizer.iterations))
print("kernel after two epochs:", float(loaded.get_weights()[0][0, 0]))
