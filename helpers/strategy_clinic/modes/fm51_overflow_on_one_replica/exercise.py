import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    half = tf.keras.layers.Dense(1, kernel_initializer="ones", dtype="mixed_float16")
    layers = [tf.keras.Input((1,)), half, tf.keras.layers.Activation("linear", dtype="float32")]
    model = tf.keras.Sequential(layers)
    sgd = tf.keras.optimizers.SGD(0.01)
    model.compile(tf.keras.mixed_precision.LossScaleOptimizer(sgd), loss="mse")
inputs = tf.constant([[1.0]] * 7 + [[300.0]])
model.fit(inputs, tf.zeros((8, 1)), batch_size=8, shuffle=False, verbose=0)
finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in model.get_weights()])
print("all weights are finite:", bool(finite))
