import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    optimizer = tf.keras.optimizers.SGD(0.1)


def step():
    with tf.GradientTape() as tape:
        errors = tf.square(model(tf.ones((4, 1))))
        loss = tf.reduce_mean(errors) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss  # fixed


@tf.function
def train_step():
    result = strategy.run(step)
    result = strategy.reduce("SUM", result, axis=None)  # fixed: outside of the step
    return result


total = train_step()
print("loss:", total.numpy())
