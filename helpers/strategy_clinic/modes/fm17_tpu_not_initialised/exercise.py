import tensorflow as tf

strategy = tf.distribute.get_strategy()
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.tpu.experimental.initialize_tpu_system(tpu)
    strategy = tf.distribute.TPUStrategy(tpu)
except ValueError:
    print("no TPU is used")
with strategy.scope():
    total = tf.Variable(0.0)
for number in range(4):
    total.assign_add(tf.constant(1.0) * number)
print("total:", total.numpy())
