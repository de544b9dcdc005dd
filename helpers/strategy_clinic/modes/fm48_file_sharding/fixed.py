from pathlib import Path

import tensorflow as tf

Path("numbers.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
policy = tf.data.experimental.AutoShardPolicy.DATA  # fixed
options = tf.data.Options()  # fixed
options.experimental_distribute.auto_shard_policy = policy  # fixed
dataset = tf.data.TextLineDataset(["numbers.txt"]).with_options(options)  # fixed
dataset = dataset.map(tf.strings.to_number).batch(4)


@tf.function
def total_of(batches):
    total = 0.0
    for batch in batches:
        sums = strategy.run(tf.reduce_sum, args=(batch,))
        total += strategy.reduce("SUM", sums, axis=None)
    return total


batches = strategy.experimental_distribute_dataset(dataset)
print("sum of all examples:", float(total_of(batches)))
