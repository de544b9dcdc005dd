"""The logical devices on which cells run."""

MOST = 4  # replicas of a cell


def split_cpu(count: int = MOST) -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, parts)
