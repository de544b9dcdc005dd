import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    checkpoint = tf.train.Checkpoint(model=model)
checkpoint.save("checkpoints/training")
saved = model.get_weights()[0]

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    checkpoint = tf.train.Checkpoint(model=model)
path = tf.train.latest_checkpoint("checkpoints")  # fixed: checkpoints/training-1
checkpoint.restore(path).assert_consumed()  # fixed
print("restored:", bool((model.get_weights()[0] == saved).all()))
