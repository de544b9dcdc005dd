import tensorflow as tf


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


model = make_model()
model.set_weights([tf.ones((3, 1)), tf.ones(1)])
tf.train.Checkpoint(model=model).save("saved/checkpoint")

loaded = tf.keras.models.load_model(tf.train.latest_checkpoint("saved"))  # wrong: not a model
print("prediction:", float(loaded(tf.ones((1, 3)))[0, 0]))
