import tensorflow as tf

strategy = tf.distribute.get_strategy()
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")  # fixed
    tf.config.experimental_connect_to_cluster(tpu)
    tf.tpu.experimental.initialize_tpu_system(tpu)
    strategy = tf.distribute.TPUStrategy(tpu)
except tf.errors.NotFoundError:
    print("cores of a TPU:", len(tf.config.list_logical_devices("TPU")))
with strategy.scope():
    weight = tf.Variable(2.0)


@tf.function
def train_step():
    return strategy.run(lambda: 3.0 * weight)


print("mean over the replicas:", strategy.reduce("MEAN", train_step(), axis=None).numpy())
