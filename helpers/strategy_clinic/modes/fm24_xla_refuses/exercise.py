import tensorflow as tf


@tf.function(jit_compile=True)
def running_sums(values):
    total = 0.0
    sums = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for number in tf.range(4):
        total += values[number]
        sums = sums.write(number, total)
    return sums.stack()


print("running sums:", running_sums(tf.constant([1.0, 2.0, 3.0, 4.0])).numpy())
