import keras
import tensorflow as tf

ids, y = tf.constant([[0], [0], [1]]), tf.constant([[1.0], [3.0], [2.0]])


def trained(layer, x, optimizer):
    model = keras.Sequential([layer, keras.layers.Flatten()])
    model.compile(optimizer(0.1), "mse")
    for _ in range(3):
        model.fit(x, y, batch_size=3, shuffle=False, verbose=0)
    return [round(each, 4) for each in layer.get_weights()[0][:, 0].tolist()]


optimizers = keras.optimizers
for optimizer in (optimizers.SGD, optimizers.Adam, optimizers.RMSprop, optimizers.Adagrad):
    table = keras.layers.Embedding(2, 1, embeddings_initializer="zeros")
    matrix = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    got = trained(table, ids, optimizer)
    expected = trained(matrix, tf.one_hot(ids[:, 0], 2), optimizer)
    print(f"{optimizer.__name__}, two vectors after 3 steps: got {got}, expected {expected}")
