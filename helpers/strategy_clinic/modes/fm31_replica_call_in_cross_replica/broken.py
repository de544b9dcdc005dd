import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.05)
dataset = tf.data.Dataset.from_tensors((tf.ones((16, 3)), tf.ones((16, 1)))).unbatch().batch(16)


def step(inputs, labels):
    with tf.GradientTape() as tape:
        errors = tf.reduce_sum(tf.square(model(inputs) - labels), axis=1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=16)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


with strategy.scope():  # wrong: it runs nothing on the devices
    for batch in dataset:  # wrong: the whole batch, for one device
        step(*batch)  # wrong: without strategy.run
print("bias after one step:", model.get_weights()[1].round(3))
