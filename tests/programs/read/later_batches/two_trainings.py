import numpy as np
import tensorflow as tf

EACH = 6  # examples of the second training for each replica
strategy = tf.distribute.MirroredStrategy()
rng = np.random.default_rng(4)
x = rng.normal(size=(96, 3)).astype("float32")
y = np.float32(x.sum(axis=1, keepdims=True) > 0)


def classifier():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])


with strategy.scope():
    first = classifier()
    first.compile("sgd", "mse")
first.fit(x, y, batch_size=12, shuffle=False, verbose=0)
print("first", first.evaluate(x, y, batch_size=12, verbose=0))

batch = EACH * strategy.num_replicas_in_sync
with strategy.scope():
    second = classifier()
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(second.trainable_variables)
entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")


def learn(rows, labels):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(entropy(labels, second(rows)))
    variables = second.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


@tf.function
def step(rows, labels):
    return strategy.reduce("SUM", strategy.run(learn, args=(rows, labels)), axis=None)


rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch)
losses = [float(step(*each)) for each in strategy.experimental_distribute_dataset(rows)]
print("second", losses[0], losses[-1])
