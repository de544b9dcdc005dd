import threading

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    accuracy = tf.keras.metrics.BinaryAccuracy()


def report():
    reading = threading.Thread(target=lambda: print("accuracy:", float(accuracy.result())))
    reading.daemon = True
    reading.start()
    reading.join(5)
    if reading.is_alive():
        raise TimeoutError("the chief has waited for five seconds in accuracy.result")


def step():
    accuracy.update_state([[1.0], [0.0]], [[0.9], [0.8]])


tf.function(strategy.run)(step)
report()  # fixed: on every worker
