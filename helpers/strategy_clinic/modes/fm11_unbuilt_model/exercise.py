import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    trained = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    loaded = tf.keras.Sequential([tf.keras.layers.Dense(1)])
loaded.set_weights(trained.get_weights())
data = tf.ones((1, 1))
print("the same prediction:", bool(loaded(data) == trained(data)))
