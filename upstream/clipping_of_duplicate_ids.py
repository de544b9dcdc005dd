import keras
import tensorflow as tf


def size_of_update(ids, **clipping):
    layer = keras.layers.Embedding(4, 1, embeddings_initializer="zeros")
    model = keras.Sequential([layer, keras.layers.Flatten()])
    model.compile(keras.optimizers.SGD(1.0, **clipping), "mse")
    model.fit(tf.constant(ids), 9 * tf.ones((4, 1)), batch_size=4, verbose=0)
    return round(float(tf.norm(layer.get_weights()[0])), 4)


for clipping in ({"global_clipnorm": 0.1}, {"clipnorm": 0.1}):
    for ids in ([[0], [1], [2], [3]], [[0], [0], [0], [0]]):
        got = size_of_update(ids, **clipping)
        print(f"{clipping}, ids {ids}, norm of the update: got {got}, expected 0.1")
