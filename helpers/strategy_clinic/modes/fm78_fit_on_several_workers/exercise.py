import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile(loss="mse")
examples = tf.constant([[1.0]] * 4 + [[2.0]] * 4)
dataset = tf.data.Dataset.from_tensor_slices((examples, 0 * examples)).batch(4)
loss = model.evaluate(dataset, verbose=0)
print("loss:", round(loss, 3))
