import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class Score:
    def __init__(self, errors):
        self.loss = tf.reduce_mean(errors)
        self.largest = tf.reduce_max(errors)


def step():
    score = Score(tf.constant([0.5, 1.5]))
    return score  # wrong: a traced step cannot return a plain object


@tf.function
def evaluate():
    return strategy.run(step)


score = evaluate()
loss = strategy.reduce("MEAN", score.loss, axis=None)  # wrong
print("loss:", float(loss))
