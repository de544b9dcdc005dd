import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)


# fixed: a plain function, traced into the graph of the step
def update(gradients):
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


def step():
    with tf.GradientTape() as tape:
        squares = tf.square(model(tf.ones((8, 3))) - 1.0)
        loss = tf.nn.compute_average_loss(tf.reduce_sum(squares, axis=1))
    update(tape.gradient(loss, model.trainable_variables))


@tf.function
def train_step():
    strategy.run(step)


train_step()
print("bias after one step:", model.get_weights()[1].round(3))
