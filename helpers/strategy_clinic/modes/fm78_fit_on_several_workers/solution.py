import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
examples = tf.constant([[1.0]] * 4 + [[2.0]] * 4)
dataset = tf.data.Dataset.from_tensor_slices((examples, 0 * examples)).batch(4)


def errors_of(inputs, labels):
    return tf.reduce_sum(tf.square(model(inputs) - labels))


total, run = 0.0, tf.function(strategy.run)
for batch in strategy.experimental_distribute_dataset(dataset):
    total += float(strategy.reduce("SUM", run(errors_of, args=batch), axis=None))
loss = total / 8
print("loss:", round(loss, 3))
