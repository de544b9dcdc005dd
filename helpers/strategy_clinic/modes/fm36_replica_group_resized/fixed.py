import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])
devices = strategy.extended.worker_devices[:2]
reduction = tf.distribute.ReductionToOneDevice()  # fixed: it forms no group
smaller = tf.distribute.MirroredStrategy(devices, reduction)  # fixed


def step():
    return tf.distribute.get_replica_context().all_reduce("MEAN", tf.ones([]))


def mean_of(chosen):
    means = chosen.run(step)
    return chosen.experimental_local_results(means)[0].numpy()


print("mean on all devices:", mean_of(strategy))
print("mean on two devices:", mean_of(smaller))
