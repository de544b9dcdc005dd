import tensorflow as tf

strategy = tf.distribute.get_strategy()
x, y = tf.ones((8, 1)), tf.fill((8, 1), 3.0)


def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y)) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


train_step = tf.function(lambda: strategy.run(step))  # wrong: it keeps the first model
for fold in range(2):
    with strategy.scope():
        dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
        model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
        optimizer = tf.keras.optimizers.SGD(0.125)
        optimizer.build(model.trainable_variables)
    train_step()
    print(f"kernel in fold {fold}:", float(model.get_weights()[0][0, 0]))
