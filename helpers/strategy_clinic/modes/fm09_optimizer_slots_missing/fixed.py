import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.125, momentum=0.5)
    model.compile(optimizer, loss="mse")
    optimizer.build(model.trainable_variables)  # fixed: creates the momentum, as zeros
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
path = checkpoint.save("checkpoints/start")  # fixed: the file has the momentum

data = tf.data.Dataset.from_tensors((tf.zeros((16, 1)), tf.ones((16, 1))))
model.fit(data, epochs=2, verbose=0)
first = model.get_weights()[1]
checkpoint.restore(path).assert_consumed()  # fixed: raises if the file lacks a value
model.fit(data, epochs=2, verbose=0)
print("the same training again:", bool(model.get_weights()[1] == first))
