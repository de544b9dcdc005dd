import keras
import tensorflow as tf


def batches():
    for _ in range(10):
        yield tf.ones((2, 1)), tf.ones((2, 1))


model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(batches(), verbose=0)
print(f"iterations after 10 batches: got {int(model.optimizer.iterations)}, expected 10")
