import keras
import tensorflow as tf


def steps(steps_per_execution):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)
    batches = tf.data.Dataset.from_tensors((tf.ones((2, 1)), tf.ones((2, 1)))).repeat()
    model.fit(batches, steps_per_epoch=10, epochs=3, verbose=0)
    predicted = model.predict(batches, steps=10, verbose=0)
    return int(model.optimizer.iterations.numpy()), len(predicted) // 2


for number in (1, 5, 4):
    trained, predicted = steps(number)
    print(f"steps_per_execution={number}, 3 epochs of 10 steps: got {trained}, expected 30")
    print(f"steps_per_execution={number}, predict of 10 steps: got {predicted}, expected 10")
