import tensorflow as tf

strategy = tf.distribute.get_strategy()


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


with strategy.scope():
    model = make_model()
    temperature = tf.Variable(1.0)  # wrong: nothing that is saved has it
temperature.assign(0.5)  # as the training does
print("before the restart:", model(tf.ones((1, 1)) / temperature).numpy())
tf.train.Checkpoint(model=model).save("saved/checkpoint")  # wrong: only the model

# The script starts again.
with strategy.scope():
    temperature = tf.Variable(1.0)
    loaded = make_model()
    tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))  # wrong
print("after the restart:", loaded(tf.ones((1, 1)) / temperature).numpy())
