import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
dataset = tf.data.Dataset.range(20).batch(4)
traces = []


def step(batch):
    traces.append("Python runs this line only while TensorFlow traces")
    return tf.reduce_sum(batch)


evaluate = tf.function(strategy.run)
for batch in dataset:
    evaluate(step, args=(batch,))
print("traced again:", len(traces) > strategy.num_replicas_in_sync)
