import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
steps = tf.Variable(0, dtype=tf.int64)  # wrong: created outside the scope, so not one per replica
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


def step():
    steps.assign_add(1)
    return model(tf.ones((2, 3)))


@tf.function
def train_step():
    strategy.run(step)


for _ in range(3):
    train_step()
print("steps:", steps.numpy())
