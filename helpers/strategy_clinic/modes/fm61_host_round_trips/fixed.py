import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
executions = []


def step():
    executions.append("Python executes this line")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tf.ones((1, 1)))) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@tf.function  # fixed: traced once, before the loop
def train_step():  # fixed
    strategy.run(step)  # fixed


for _ in range(60):
    train_step()  # fixed
print("Python executes each of 60 steps:", len(executions) >= 60)
