import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def make(context):
    numbers = tf.data.Dataset.range(64)
    mine = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
    return mine.batch(context.get_per_replica_batch_size(8))  # fixed


@tf.function
def train_step(batch):
    return strategy.reduce("SUM", strategy.run(tf.size, args=(batch,)), axis=None)


batches = strategy.distribute_datasets_from_function(make)
sizes = [int(train_step(batch)) for batch in batches]
print("one epoch:", len(sizes), "steps of", sizes[0], "examples")
