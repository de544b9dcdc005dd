import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=5)
dataset = tf.data.Dataset.from_tensors((tf.ones((8, 3)), tf.ones((8, 1)))).repeat()
model.fit(dataset, epochs=2, steps_per_epoch=10, verbose=0)
print("steps:", model.optimizer.iterations.numpy())
