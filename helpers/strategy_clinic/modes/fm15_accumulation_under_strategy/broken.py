import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(1.0)
    total = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build([weight])


def step(number):
    total.assign_add(number / strategy.num_replicas_in_sync)  # in place of a gradient
    tf.cond(number % 4 == 0, update, lambda: None)  # wrong: a condition in the replica


def update():
    optimizer.apply_gradients([(tf.identity(total), weight)])
    total.assign(tf.constant(0.0))


@tf.function
def train_step(number):
    strategy.run(step, args=(number,))


for number in tf.range(1.0, 9.0):
    train_step(number)
print("weight after two updates:", weight.numpy().round(3))
