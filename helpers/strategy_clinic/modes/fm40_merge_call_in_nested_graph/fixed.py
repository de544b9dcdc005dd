import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)
dataset = tf.data.Dataset.from_tensors((tf.ones((16, 3)), tf.ones((16, 1)))).unbatch().batch(16)


# fixed: a plain function, traced into the graph of the step
def update(gradients):
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


def step(inputs, labels):
    with tf.GradientTape() as tape:
        errors = tf.reduce_sum(tf.square(model(inputs) - labels), axis=1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=16)
    update(tape.gradient(loss, model.trainable_variables))


train_step = tf.function(lambda batch: strategy.run(step, args=batch))
for batch in strategy.experimental_distribute_dataset(dataset):
    train_step(batch)
print("bias after one step:", model.get_weights()[1].round(3))
