import keras
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
sums = {"trainable": False, "aggregation": tf.VariableAggregation.SUM}
with two.scope():
    variables = {
        "tf.Variable": tf.Variable(0.0, **sums),
        "keras.Variable": keras.Variable(0.0, trainable=False, aggregation="sum"),
    }
for name, variable in variables.items():
    for step in (1, 2, 3):
        two.run(lambda counter=variable: counter.assign_add(tf.ones(())))
        got = float(variable.numpy())
        print(f"{name}, 2 replicas add one, step {step}: got {got}, expected {2.0 * step}")
