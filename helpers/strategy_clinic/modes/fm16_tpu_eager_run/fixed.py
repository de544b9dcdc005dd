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


@tf.function  # fixed: traced once, before the loop
def train_step():  # fixed
    strategy.run(step)  # fixed


for _ in range(3):
    train_step()  # fixed
print("kernel after three steps:", model.get_weights()[0].round(3))
