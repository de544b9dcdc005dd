import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1000,)), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)


def bytes_of(values):
    return sum(tf.convert_to_tensor(value).numpy().nbytes for value in values)


variables = [*model.variables, *optimizer.variables]
needed = bytes_of(variables)
planned = needed / strategy.num_replicas_in_sync  # wrong: variables are copied, not divided
held = strategy.run(lambda: bytes_of(variables))
most = max(strategy.experimental_local_results(held))
print("each device holds what was planned:", most <= planned)
