import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


with strategy.scope():
    model = make_model()
    temperature = tf.Variable(1.0)  # fixed: named in the checkpoint
temperature.assign(0.5)  # as the training does
print("before the restart:", model(tf.ones((1, 1)) / temperature).numpy())
checkpoint = tf.train.Checkpoint(model=model, temperature=temperature)  # fixed
checkpoint.save("saved/checkpoint")  # fixed

# The script starts again.
with strategy.scope():
    temperature = tf.Variable(1.0)
    loaded = make_model()
    checkpoint = tf.train.Checkpoint(model=loaded, temperature=temperature)  # fixed
    checkpoint.restore(tf.train.latest_checkpoint("saved"))  # fixed
print("after the restart:", loaded(tf.ones((1, 1)) / temperature).numpy())
