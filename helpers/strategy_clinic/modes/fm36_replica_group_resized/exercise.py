import tensorflow as tf

host = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * 4)
names = [device.name for device in tf.config.list_logical_devices("CPU")]


def weight_after_one_step(mirrored):
    with mirrored.scope():
        weight = tf.Variable(1.0)
        optimizer = tf.keras.optimizers.SGD(0.1)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.square(weight) / mirrored.num_replicas_in_sync
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    tf.function(lambda: mirrored.run(step))()
    return weight.numpy().round(3)


for count in (1, 2, 4):
    mirrored = tf.distribute.MirroredStrategy(names[:count])
    print("weight after one step:", weight_after_one_step(mirrored))
