import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    generator = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    critic = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    generator.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
    critic.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
data = tf.data.Dataset.from_tensors((tf.zeros((16, 1)), tf.ones((16, 1))))
generator.fit(data, verbose=0)
critic.fit(data, verbose=0)
print("biases:", generator.get_weights()[1], critic.get_weights()[1])
