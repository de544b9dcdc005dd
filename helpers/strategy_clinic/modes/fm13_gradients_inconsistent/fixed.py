import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    heads = [tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones") for _ in range(2)]
    for head in heads:
        head.build((None, 1))
    optimizer = tf.keras.optimizers.SGD(0.1)
weights = [head.kernel for head in heads]


@tf.function
def train_step():
    totals = [tf.zeros(weight.shape) for weight in weights]
    for head, inputs in zip(heads, ([[1.0]], [[2.0]])):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(head(tf.constant(inputs))) / strategy.num_replicas_in_sync
        found = tape.gradient(loss, weights)  # fixed
        gradients = [tf.zeros(w.shape) if g is None else g for g, w in zip(found, weights)]  # fixed
        totals = [total + gradient for total, gradient in zip(totals, gradients)]
    optimizer.apply_gradients(zip(totals, weights))


strategy.run(train_step)
print("kernels after one step:", *(head.get_weights()[0].round(3) for head in heads))
