import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    checkpoint = tf.train.Checkpoint(model=model)
checkpoint.save("runs/monday/training")
saved = model.get_weights()[0]

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    checkpoint = tf.train.Checkpoint(model=model)
checkpoint.restore(tf.train.latest_checkpoint("runs"))
print("restored:", bool((model.get_weights()[0] == saved).all()))
