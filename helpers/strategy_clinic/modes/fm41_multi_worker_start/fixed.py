import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
dataset = tf.data.Dataset.range(8).batch(4)  # fixed


@tf.function
def total_of(batches):
    total = tf.constant(0, tf.int64)
    for batch in batches:
        sums = strategy.run(tf.reduce_sum, args=(batch,))
        total += strategy.reduce("SUM", sums, axis=None)
    return total


batches = strategy.experimental_distribute_dataset(dataset)
print("sum of all examples:", int(total_of(batches)))
