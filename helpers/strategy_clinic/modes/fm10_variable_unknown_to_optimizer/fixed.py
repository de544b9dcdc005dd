import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    base = tf.keras.layers.Dense(1, kernel_initializer="ones", trainable=False)
    head = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), base, head])
    optimizer = tf.keras.optimizers.SGD(0.125)
    model.compile(optimizer, loss="mse")
data = tf.data.Dataset.from_tensors((tf.ones((16, 1)), tf.fill((16, 1), 2.0)))
model.fit(data, verbose=0)

base.trainable = True
with strategy.scope():
    model.compile(tf.keras.optimizers.SGD(0.125), loss="mse")  # fixed: a new optimizer
model.fit(data, verbose=0)
print("kernel of the base:", base.get_weights()[0])
