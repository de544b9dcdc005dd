import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@tf.keras.utils.register_keras_serializable()  # fixed
class OwnDropout(tf.keras.layers.Layer):  # fixed
    def __init__(self, **options):  # fixed
        super().__init__(**options)  # fixed
        self.generator = tf.random.Generator.from_non_deterministic_state()  # fixed

    def call(self, inputs, training=False):  # fixed
        kept = self.generator.uniform(tf.shape(inputs)) >= 0.5  # fixed
        return tf.where(kept, 2.0 * inputs, 0.0) if training else inputs  # fixed


with strategy.scope():
    dropout = OwnDropout()  # fixed


def step():
    return dropout(tf.ones((1, 64)), training=True)


@tf.function
def train_step():
    return strategy.run(step)


masks = strategy.gather(train_step(), axis=0).numpy()
print("replicas that repeat a mask:", len(masks) - len({bytes(mask) for mask in masks}))
