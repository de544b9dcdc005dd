import tensorflow as tf

strategy = tf.distribute.get_strategy()
schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=1, decay_rate=0.5)


def make_model():
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(schedule), tf.keras.losses.MeanSquaredError())
        model.optimizer.build(model.trainable_variables)
    return model


model = make_model()
model.fit(tf.ones((8, 1)), tf.ones((8, 1)), epochs=3, verbose=0)
tf.train.Checkpoint(model=model).save("saved/checkpoint")

schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=1, decay_rate=0.5)
loaded = make_model()
tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))
loaded.optimizer.iterations.assign(0)
print("first learning rate:", round(float(schedule(loaded.optimizer.iterations)), 4))
