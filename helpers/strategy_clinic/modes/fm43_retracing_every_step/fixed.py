import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)


def step(rate):
    with tf.GradientTape() as tape:
        loss = tf.square(weight - 1.0)
    weight.assign_sub(rate * tape.gradient(loss, weight))


@tf.function
def train_step(rate):
    strategy.run(step, args=(rate,))


for number in range(5):
    rate = tf.constant(0.1 / (1 + number))  # fixed
    train_step(rate)
print("traces:", train_step.experimental_get_tracing_count())
