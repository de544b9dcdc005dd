import tensorflow as tf


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


model = make_model()
model.set_weights([tf.ones((3, 1)), tf.ones(1)])
tf.train.Checkpoint(model=model).save("saved/checkpoint")

files = tf.io.gfile.glob("*[!y]")  # wrong: all that is saved beside this .py file
newest = max(files, key=lambda name: tf.io.gfile.stat(name).mtime_nsec)  # wrong
loaded = tf.keras.models.load_model(newest)  # wrong: it reads whole models only
print("prediction:", float(loaded(tf.ones((1, 3)))[0, 0]))
