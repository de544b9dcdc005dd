import tensorflow as tf

strategy = tf.distribute.get_strategy()


def learning_rate(epoch):
    return 0.1 * 0.5 ** epoch.numpy()


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    epoch = tf.Variable(0.0)
checkpoint = tf.train.Checkpoint(model=model)
epoch.assign(3.0)
checkpoint.save("epochs/checkpoint")

# The script starts again.
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    epoch = tf.Variable(0.0)
checkpoint = tf.train.Checkpoint(model=model)
checkpoint.restore(tf.train.latest_checkpoint("epochs")).assert_consumed()
print("next learning rate:", learning_rate(epoch))
