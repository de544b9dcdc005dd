import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.5, momentum=0.5)
    model.compile(optimizer, loss="mse")
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
start = checkpoint.save("checkpoints/start")

data = tf.data.Dataset.from_tensors((tf.zeros((16, 1)), tf.ones((16, 1))))
for rate in (0.25, 0.125):
    checkpoint.restore(start)
    optimizer.learning_rate = rate
    model.fit(data, epochs=2, verbose=0)
    print("learning rate", rate, "gives", model.get_weights()[1])
