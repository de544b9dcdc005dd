import tensorflow as tf

strategy = tf.distribute.get_strategy()
learning_rate = 0.1


def make_model():
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(learning_rate), tf.keras.losses.MeanSquaredError())
        model.optimizer.build(model.trainable_variables)
    return model


model = make_model()
model.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)
tf.train.Checkpoint(model=model).save("saved/checkpoint")

learning_rate = 0.001
loaded = make_model()
tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))  # fixed
loaded.optimizer.learning_rate = learning_rate  # fixed: set the rate after the restore
loaded.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)
print("learning rate:", round(float(loaded.optimizer.learning_rate.numpy()), 4))
