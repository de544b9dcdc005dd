import tensorflow as tf

limit = tf.distribute.experimental.CommunicationOptions(timeout_seconds=5)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=limit)
resolver = strategy.cluster_resolver
workers, number = len(resolver.cluster_spec().job_tasks("worker")), resolver.task_id
batches = tf.data.Dataset.range(10).batch(2).shard(workers, number)


@tf.function
def total_of(batch):
    sums = strategy.run(tf.reduce_sum, args=(batch,))
    return strategy.reduce("SUM", sums, axis=None)


total = 0
for batch in batches:
    total += int(total_of(batch))
print("sum of all examples:", total)
