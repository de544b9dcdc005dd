import tensorflow as tf

tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    optimizer = tf.keras.optimizers.SGD(0.5)
    weight = tf.Variable(1.0)
    optimizer.build([weight])


def step():
    with tf.GradientTape() as tape:
        loss = weight / strategy.num_replicas_in_sync
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])


strategy.run(step)
print("weight:", float(weight.numpy()))
