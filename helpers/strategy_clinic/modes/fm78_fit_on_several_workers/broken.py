import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.125)
    model.compile(optimizer, "mse")
examples = [[1.0]] * 4 + [[2.0]] * 4, [[0.0]] * 8
dataset = tf.data.Dataset.from_tensor_slices(examples).batch(8)

model.fit(dataset, verbose=0)  # wrong: Keras 3 does not combine what the workers have
print("weight after one step:", float(model.get_weights()[0][0, 0]))
