import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)


def make_checkpoint():
    with strategy.scope():
        return tf.train.Checkpoint(step=tf.Variable(0), table=tf.Variable(tf.zeros((5_000_000,))))


first = make_checkpoint()
first.step.assign(40)
first.save("saved/a", options=options)
second = make_checkpoint()
path = tf.train.latest_checkpoint("saved")
if path is not None:
    second.restore(path)
print("training goes on at step", int(second.step.numpy()))
