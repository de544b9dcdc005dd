import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.25)
    model(tf.zeros((1, 1)))  # fixed: the first call creates the weights
    totals = [tf.zeros(w.shape) for w in model.trainable_variables]  # fixed


def step():
    sums = totals
    for batch in (tf.ones((4, 1)), tf.ones((4, 1))):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(batch)) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        sums = [total + gradient for total, gradient in zip(sums, gradients)]
    optimizer.apply_gradients(zip(sums, model.trainable_variables))


@tf.function
def train_step():
    strategy.run(step)


train_step()
print("bias after one update from two batches:", model.get_weights()[1])
