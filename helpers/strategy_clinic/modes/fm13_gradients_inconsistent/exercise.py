import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
weights = model.trainable_variables

with tf.GradientTape(persistent=True) as tape:
    loss = tf.reduce_sum(model(tf.ones((1, 1))))
    penalty = tf.nn.l2_loss(dense.kernel)
of_loss = tape.gradient(loss, weights)
of_penalty = tape.gradient(penalty, weights)
gradients = [one + other for one, other in zip(of_loss, of_penalty)]
print("gradients of kernel and bias:", *(gradient.numpy().sum() for gradient in gradients))
