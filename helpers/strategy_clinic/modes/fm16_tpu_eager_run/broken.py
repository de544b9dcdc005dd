import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    optimizer = tf.keras.optimizers.SGD(0.1)


def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tf.ones((1, 1)))) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for _ in range(3):
    strategy.run(step)  # wrong: outside of a tf.function
print("kernel after three steps:", model.get_weights()[0].round(3))
